#include "gateway/settings.h"

#include <errno.h>
#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fatal.h"
#include "gateway/keys.h"
#include "gateway/settings_check.h"

enum { FILE_MAX = 4 * 1024 * 1024 };

/* ---------------------------------------------------------------- errors */

void config_error(struct config_errors *errs, unsigned line, unsigned column, const char *fmt, ...)
{
    struct config_error *e = NULL;
    va_list ap;

    if (errs->n == CONFIG_ERRORS_MAX) {
        errs->more++;
        return;
    }
    e = &errs->v[errs->n++];
    e->line = line;
    e->column = column;
    va_start(ap, fmt);
    if (vsnprintf(e->text, sizeof(e->text), fmt, ap) < 0)
        e->text[0] = '\0';
    va_end(ap);
}

static int by_place(const void *a, const void *b)
{
    const struct config_error *x = a;
    const struct config_error *y = b;

    if (x->line != y->line)
        return x->line < y->line ? -1 : 1;
    return x->column < y->column ? -1 : x->column > y->column ? 1 : 0;
}

void config_errors_print(const struct config_errors *errs, struct buf *out)
{
    for (size_t i = 0; i < errs->n; i++) {
        const struct config_error *e = &errs->v[i];

        if (e->line != 0)
            buf_printf(out, "%s:%u:%u: error: %s\n", errs->file, e->line, e->column, e->text);
        else
            buf_printf(out, "%s: error: %s\n", errs->file, e->text);
    }
    if (errs->more != 0)
        buf_printf(out, "%s: error: %zu more\n", errs->file, errs->more);
}

/* ---------------------------------------------------------------- life */

struct settings *settings_get(struct settings *s)
{
    ref_get(&s->refs);
    return s;
}

void settings_put(struct settings *s)
{
    struct arena a;

    if (s == NULL || !ref_put(&s->refs))
        return;
    a = s->arena; /* holds `s` itself */
    arena_free(&a);
}

static struct settings *new_settings(const char *file)
{
    struct arena a;
    struct settings *s = NULL;

    arena_init(&a);
    s = arena_alloc(&a, sizeof(*s));
    ref_init(&s->refs);
    s->arena = a;
    s->file = arena_cstr(&s->arena, str_from(file));
    return s;
}

/* ---------------------------------------------------------------- environment */

static void override(struct settings *s, const char *name, struct str *to)
{
    const char *v = getenv(name);

    if (v != NULL && v[0] != '\0')
        *to = arena_str(&s->arena, str_from(v));
}

/* One value each, for containers. */
static void take_environment(struct settings *s)
{
    struct str level = STR_NONE;

    if (s->n_listen != 0)
        override(s, "DUBBOGATE_LISTEN", &s->listen[0].address);
    if (s->admin_listen.n != 0)
        override(s, "DUBBOGATE_ADMIN_LISTEN", &s->admin_listen.v[0]);
    if (s->n_registries != 0)
        override(s, "DUBBOGATE_REGISTRY", &s->registries[0].address);
    override(s, "DUBBOGATE_LOG_LEVEL", &level);
    for (uint32_t i = 0; level.n != 0 && i < 5; i++) {
        static const char *const names[] = {"debug", "info", "notice", "warn", "error"};

        if (str_is(level, names[i]))
            s->logging.error.level = i;
    }
}

static void set_default_lists(struct settings *s)
{
    if (s->admin_listen.n != 0)
        return;
    s->admin_listen.v = arena_alloc(&s->arena, sizeof(struct str));
    s->admin_listen.v[0] = STR("127.0.0.1:9901");
    s->admin_listen.n = 1;
}

/* ---------------------------------------------------------------- hash */

static void make_hash(struct settings *s)
{
    unsigned char digest[32] = {0};
    struct buf text;

    buf_init(&text, (size_t)64 * 1024 * 1024);
    keys_dump(s, &text);
    if (gnutls_hash_fast(GNUTLS_DIG_SHA256, text.data, text.len, digest) != 0)
        memset(digest, 0, sizeof(digest));
    snprintf(s->hash, sizeof(s->hash), "%02x%02x%02x%02x", digest[0], digest[1], digest[2],
             digest[3]);
    buf_free(&text);
}

/* ---------------------------------------------------------------- loading */

static void on_yaml_error(void *ctx, unsigned line, unsigned column, const char *text)
{
    config_error(ctx, line, column, "%s", text);
}

struct settings *settings_parse(const char *file, struct str text, struct config_errors *errs)
{
    const struct yaml_opts yo = {.environment = true, .on_error = on_yaml_error, .ctx = errs};
    struct settings *s = new_settings(file);
    struct key_context c = {.s = s, .errs = errs, .a = &s->arena};
    struct yaml_node *root = NULL;

    errs->file = file;
    keys_defaults(&c, keys_top, s);
    root = yaml_load(text, &s->arena, &yo);
    if (root != NULL && root->kind != YAML_MAP)
        config_error(errs, root->line, root->column, "the file must be a block of keys");
    if (root != NULL && root->kind == YAML_MAP) {
        s->root = root;
        keys_apply(&c, keys_top, s, root, "");
        set_default_lists(s);
        take_environment(s);
        settings_resolve(&c);
    }
    qsort(errs->v, errs->n, sizeof(errs->v[0]), by_place);
    if (errs->n != 0) {
        settings_put(s);
        return NULL;
    }
    make_hash(s);
    return s;
}

struct settings *settings_load(const char *file, struct config_errors *errs)
{
    struct buf text;
    FILE *f = fopen(file, "re");
    struct settings *s = NULL;
    size_t n = 1;

    errs->file = file;
    if (f == NULL) {
        config_error(errs, 0, 0, "cannot read it: %s", strerror(errno));
        return NULL;
    }
    buf_init(&text, FILE_MAX + 65536);
    while (n != 0) {
        uint8_t *at = buf_reserve(&text, 16384);

        if (at == NULL)
            break;
        n = fread(at, 1, 16384, f);
        buf_commit(&text, n);
    }
    if (ferror(f) || text.failed)
        config_error(errs, 0, 0, text.failed ? "the file is larger than 4 MiB" : "cannot read it");
    else
        s = settings_parse(file, buf_str(&text), errs);
    fclose(f);
    buf_free(&text);
    return s;
}

/* ---------------------------------------------------------------- looking up */

const struct service *settings_service(const struct settings *s, struct str name)
{
    for (size_t i = 0; i < s->n_services; i++) {
        if (str_eq(s->services[i].name, name))
            return &s->services[i];
    }
    return NULL;
}

const struct method *service_method(const struct service *s, struct str name)
{
    for (size_t i = 0; i < s->n_methods; i++) {
        if (str_eq(s->methods[i].name, name))
            return &s->methods[i];
    }
    return NULL;
}

bool networks_contain(const struct network *v, size_t n, const struct sockaddr *sa)
{
    union address a = {.sa.sa_family = AF_UNSPEC};

    if (sa->sa_family == AF_INET)
        memcpy(&a.v4, sa, sizeof(a.v4));
    else if (sa->sa_family == AF_INET6)
        memcpy(&a.v6, sa, sizeof(a.v6));
    else
        return false;
    for (size_t i = 0; i < n; i++) {
        if (network_contains(&v[i], &a))
            return true;
    }
    return false;
}

/* ---------------------------------------------------------------- what a reload cannot change */

/* Compares the texts of the restart-only rows: what prints alike is alike. */
static void compare_rows(const struct key *table, const void *a, const void *b, const char **keys,
                         size_t *n, size_t max)
{
    for (const struct key *k = table; k->name != NULL; k++) {
        struct buf x;
        struct buf y;

        if (k->type == KEY_BLOCK) {
            compare_rows(k->table, a, b, keys, n, max);
            continue;
        }
        if (!k->restart || *n == max)
            continue;
        buf_init(&x, FILE_MAX);
        buf_init(&y, FILE_MAX);
        keys_print_row(k, a, &x);
        keys_print_row(k, b, &y);
        if (!str_eq(buf_str(&x), buf_str(&y)))
            keys[(*n)++] = k->name;
        buf_free(&x);
        buf_free(&y);
    }
}

size_t settings_restart_keys(const struct settings *a, const struct settings *b, const char **keys,
                             size_t max)
{
    size_t n = 0;

    compare_rows(keys_top, a, b, keys, &n, max);
    return n;
}
