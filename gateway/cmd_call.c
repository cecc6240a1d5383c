/*
 * dubbogate call: one invocation without HTTP, over the same connections, calls and codec.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fatal.h"
#include "codec/invoke.h"
#include "codec/json_read.h"
#include "registry/listing.h"
#include "registry/resolve.h"
#include "registry/url.h"
#include "gateway/call.h"
#include "gateway/cmd.h"
#include "gateway/keys.h"

enum { INPUT_MAX = 8 * 1024 * 1024, ARGS_MAX = 64, OUTPUT_MAX = 256 * 1024 * 1024 };

struct call_opts {
    const char *registry;
    const char *types;
    const char *target;
    const char *method;
    const char *args;
    uint64_t timeout_ms;
    uint64_t repeat;
    bool verbose;
    bool raw;
    struct str attachments[32][2];
    size_t n_attachments;
};

struct caller {
    struct call_opts o;
    struct wctx w;
    struct calls calls;
    struct peers *peers;
    struct refs *refs;
    struct ref *ref;
    ev_prepare prepare;
    struct arena arena;
    struct arg args[ARGS_MAX]; /* of the call */
    struct jtype types[ARGS_MAX];
    struct buf json;
    struct reply_opts reply;
    enum outcome outcome;
    int rc;
};

static const char *const known[] = {"-r", "-t", "-A", "--timeout", "-n", "-v", "--generic-raw"};

/* ---------------------------------------------------------------- options */

static bool take_option(struct call_opts *o, const char *name, const char *value)
{
    struct str v = str_from(value);

    if (strcmp(name, "-r") == 0) {
        o->registry = value;
    } else if (strcmp(name, "-t") == 0) {
        o->types = value;
    } else if (strcmp(name, "--timeout") == 0) {
        return keys_parse_ms(v, &o->timeout_ms) && o->timeout_ms != 0;
    } else if (strcmp(name, "-n") == 0) {
        return str_to_u64(v, 1000000, &o->repeat) && o->repeat != 0;
    } else if (strcmp(name, "-A") == 0 && o->n_attachments < 32) {
        struct str rest = STR_NONE;

        o->attachments[o->n_attachments][0] = str_cut(v, '=', &rest);
        o->attachments[o->n_attachments++][1] = rest;
        return rest.p != NULL;
    } else {
        return false;
    }
    return true;
}

static int parse(int argc, char **argv, struct call_opts *o)
{
    const char *words[3] = {NULL, NULL, NULL};
    int n = 0;

    *o = (struct call_opts){.timeout_ms = 3000, .repeat = 1};
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "-v") == 0)
            o->verbose = true;
        else if (strcmp(argv[i], "--generic-raw") == 0)
            o->raw = true;
        else if (argv[i][0] == '-' && argv[i][1] != '\0' && i + 1 < argc &&
                 take_option(o, argv[i], argv[i + 1]))
            i++;
        else if (argv[i][0] == '-' && argv[i][1] != '\0')
            return cmd_unknown_option(argv[i], known, (unsigned)ARRAY_LEN(known));
        else if (n < 3)
            words[n++] = argv[i];
    }
    if (n < 2) {
        fprintf(
            stderr,
            "usage: dubbogate call [-r zookeeper://H:P] [-t TYPES] [-A KEY=VALUE] [--timeout 3s] [-n N] [-v] "
            "TARGET METHOD [ARGS]\n");
        return EXIT_USAGE;
    }
    o->target = words[0];
    o->method = words[1];
    o->args = words[2] != NULL ? words[2] : "[]";
    return EXIT_GOOD;
}

/* ARGS: a JSON array, "-" for stdin, "@FILE". */
static bool read_args(const char *word, struct buf *out)
{
    FILE *f = stdin;
    size_t n = 1;

    if (strcmp(word, "-") != 0 && word[0] != '@') {
        buf_add_str(out, str_from(word));
        return true;
    }
    if (word[0] == '@')
        f = fopen(word + 1, "re");
    if (f == NULL)
        return false;
    while (n != 0) {
        uint8_t *at = buf_reserve(out, 4096);

        if (at == NULL)
            break;
        n = fread(at, 1, 4096, f);
        buf_commit(out, n);
    }
    if (f != stdin)
        fclose(f);
    return !out->failed;
}

/* ---------------------------------------------------------------- where to */

/* dubbo://H:P/INTERFACE?version=&group= */
static struct directory *from_url(struct caller *c, struct str url, struct err *e)
{
    struct provider p;
    struct refkey k;

    if (!provider_from_url(url, &c->arena, &p, e))
        return NULL;
    if (!refkey_make(p.interface.n != 0 ? p.interface : p.path, p.version, p.group, &k, e))
        return NULL;
    return directory_build(&k, &p, 1, DIRECTORY_STATIC);
}

static struct directory *from_registry(struct caller *c, struct str target, struct err *e)
{
    struct refkey k;
    struct listing l = {0};
    struct provider *v = NULL;
    size_t n = 0;

    if (!refkey_parse(target, &k, e))
        return NULL;
    if (c->o.registry == NULL) {
        err_set(e, "TARGET is dubbo://H:P/INTERFACE, or give the registry with -r zookeeper://H:P");
        return NULL;
    }
    if (!listing_providers(c->o.registry, "/dubbo", k.interface, &c->arena, &l, e))
        return NULL;
    v = arena_alloc(&c->arena, (l.n + 1) * sizeof(*v));
    for (size_t i = 0; i < l.n; i++) {
        struct err ignored;

        if (provider_from_url(l.names[i], &c->arena, &v[n], &ignored) &&
            provider_matches(&v[n], &k))
            n++;
    }
    return directory_build(&k, v, n, DIRECTORY_REGISTRY);
}

static bool resolve_all(struct directory *d, struct err *e)
{
    struct resolver *r = resolver_new(NULL);
    size_t good = 0;

    for (size_t i = 0; i < d->n; i++)
        good += resolve(r, d->providers[i].host, d->providers[i].port, &d->providers[i].addr, e)
                    ? 1U
                    : 0U;
    resolver_free(r);
    return good != 0 || d->n == 0;
}

/* ---------------------------------------------------------------- the call */

static int exit_code(enum outcome o)
{
    static const struct {
        enum outcome outcome;
        int code;
    } codes[] = {
        {OUTCOME_OK, EXIT_GOOD},
        {OUTCOME_PROVIDER_TIMEOUT, EXIT_TIMEOUT},
        {OUTCOME_PROVIDER_EXCEPTION, EXIT_EXCEPTION},
        {OUTCOME_VALIDATION_FAILED, EXIT_EXCEPTION},
        {OUTCOME_NO_PROVIDER, EXIT_NO_PROVIDER},
        {OUTCOME_NO_PROVIDER_AFTER_RULES, EXIT_NO_PROVIDER},
        {OUTCOME_METHOD_NOT_FOUND, EXIT_REFUSED},
        {OUTCOME_BAD_ARGUMENT, EXIT_REFUSED},
        {OUTCOME_ARGUMENT_COUNT, EXIT_REFUSED},
        {OUTCOME_UNKNOWN_TYPE, EXIT_REFUSED},
        {OUTCOME_AMBIGUOUS_METHOD, EXIT_REFUSED},
    };

    for (size_t i = 0; i < ARRAY_LEN(codes); i++) {
        if (codes[i].outcome == o)
            return codes[i].code;
    }
    return EXIT_CONNECTION;
}

static void on_end(struct call *c)
{
    struct caller *k = c->user;
    const struct problem *p = &c->problem;

    k->outcome = c->outcome;
    k->rc = exit_code(c->outcome);
    if (c->outcome != OUTCOME_OK) {
        fprintf(stderr, "%s: %s\n", outcome_row(c->outcome)->code,
                p->detail[0] != '\0' ? p->detail : outcome_row(c->outcome)->detail);
        if (p->exception_class[0] != '\0')
            fprintf(stderr, "  %s\n", p->exception_class);
    } else if (c->kind == REPLY_NULL) {
        buf_add_str(&k->json, STR("null"));
    }
    if (k->o.verbose)
        fprintf(stderr, "provider %s, %llu us, %u tries\n", c->provider,
                (unsigned long long)c->provider_us, c->tries);
    call_free(c);
    ev_break(k->w.loop, EVBREAK_ALL);
}

static void on_attachment(void *ctx, struct str name, struct str value)
{
    const struct call *c = ctx;
    const struct caller *k = c->user;

    if (k->o.verbose)
        fprintf(stderr, "attachment " STR_FMT "=" STR_FMT "\n", STR_ARG(name), STR_ARG(value));
}

static void on_prepare(struct ev_loop *loop, ev_prepare *p, int events)
{
    struct caller *k = container_of(p, struct caller, prepare);

    k->w.now_ms = clock_ms();
    k->w.wall_ms = wall_ms();
    conn_flush_all(&k->w);
}

static bool encode(struct caller *k, struct call *c, struct str text)
{
    static const struct args_opts opts = {.max_depth = 128};
    struct arg *args = k->args;
    struct jtype *types = k->types;
    struct json_each each = {0};
    struct str element;
    struct str list = str_from(k->o.types);
    struct args_error ae;
    struct err e = {0};
    size_t n = 0;
    size_t n_types = 0;

    while (list.n != 0 && n_types < ARGS_MAX) {
        if (!jtype_parse(str_cut(list, ',', &list), &k->arena, &types[n_types++], &e)) {
            fprintf(stderr, "dubbogate: %s\n", e.text);
            return false;
        }
    }
    if (!json_is_valid(text, 128, NULL, NULL) || json_kind_of(text) != JSON_TOKEN_BEGIN_ARRAY) {
        fprintf(stderr, "dubbogate: ARGS must be one JSON array\n");
        return false;
    }
    while (n < ARGS_MAX && json_array_next(&each, text, &element)) {
        args[n] = (struct arg){.json = element, .type = n < n_types ? &types[n] : NULL};
        n++;
    }
    if (n_types != 0 && n_types != n) {
        fprintf(stderr, "dubbogate: %zu arguments for %zu types\n", n, n_types);
        return false;
    }
    c->plan.wish.args = args;
    c->plan.wish.n_args = n;
    c->middle.limit = INPUT_MAX;
    if (invoke_middle(str_from(k->o.method), args, n, &opts, &c->middle, &ae) != ARGS_OK) {
        fprintf(stderr, "dubbogate: argument %zu%s: %s\n", ae.arg, ae.pointer, ae.detail);
        return false;
    }
    for (size_t i = 0; i < k->o.n_attachments; i++) {
        if (!invoke_attachment(k->o.attachments[i][0], k->o.attachments[i][1], &c->attachments))
            return false;
    }
    return true;
}

static int one_call(struct caller *k, struct str args)
{
    struct call *c = call_new(&k->calls);

    buf_truncate(&k->json, 0);
    c->plan = (struct call_plan){
        .ref = k->ref,
        .method = str_from(k->o.method),
        .timeout_ms = (uint32_t)k->o.timeout_ms,
        .timeout_explicit = true,
        .timeout_of_client = true,
        .max_timeout_ms = (uint32_t)k->o.timeout_ms,
        .max_requests = 1000,
        .max_requests_per_provider = 1000,
        .reply = &k->reply,
    };
    c->json = &k->json;
    c->on_end = on_end;
    c->on_attachment = on_attachment;
    c->user = k;
    if (!encode(k, c, args)) {
        call_free(c);
        return EXIT_REFUSED;
    }
    k->rc = -1;
    call_start(c);
    if (k->rc < 0)
        ev_run(k->w.loop, 0);
    return k->rc;
}

static void init(struct caller *k)
{
    const struct refs_opts ro = {
        .application = "dubbogate",
        .peer = {.connections = 1,
                 .conn = {.connect_timeout_ms = 3000,
                          .heartbeat_ms = 60000,
                          .max_in_flight = 1000,
                          .max_buffered = 16 * 1024 * 1024,
                          .max_response = 64 * 1024 * 1024}},
    };

    k->w = (struct wctx){.loop = ev_loop_new(EVFLAG_AUTO),
                         .recv_buffer = xrealloc(NULL, RECV_BUFFER_LEN),
                         .now_ms = clock_ms(),
                         .wall_ms = wall_ms(),
                         .random = clock_us() | 1U};
    list_init(&k->w.dirty);
    list_init(&k->w.dead);
    calls_init(&k->calls, &k->w);
    k->peers = peers_new(&k->w);
    k->refs = refs_new(&k->w, k->peers, &ro);
    k->reply = (struct reply_opts){
        .max_depth = 128, .keep_class = k->o.raw, .no_rebuild = k->o.raw};
    buf_init(&k->json, OUTPUT_MAX);
    ev_prepare_init(&k->prepare, on_prepare);
    ev_prepare_start(k->w.loop, &k->prepare);
}

static void finish(struct caller *k)
{
    refs_free(k->refs);
    peers_free(k->peers);
    calls_free(&k->calls);
    ev_prepare_stop(k->w.loop, &k->prepare);
    ev_loop_destroy(k->w.loop);
    free(k->w.recv_buffer);
    buf_free(&k->json);
}

static void hand_over(struct caller *k, struct directory *d)
{
    struct registry_mail *m = xcalloc(1, sizeof(*m));
    struct buf key;

    k->ref = refs_pin(k->refs, &d->key);
    buf_init(&key, 1024);
    refkey_print(&d->key, &key);
    m->kind = REGISTRY_MAIL_DIRECTORY;
    m->key_text = strndup((const char *)key.data, key.len);
    m->directory = d;
    buf_free(&key);
    refs_apply(k->refs, m);
}

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;

    return x < y ? -1 : x > y ? 1 : 0;
}

static int run_all(struct caller *k, struct str args)
{
    uint64_t *us = xcalloc(k->o.repeat, sizeof(*us));
    int rc = EXIT_GOOD;

    for (uint64_t i = 0; i < k->o.repeat && rc == EXIT_GOOD; i++) {
        uint64_t start = clock_us();

        rc = one_call(k, args);
        us[i] = clock_us() - start;
    }
    if (rc == EXIT_GOOD)
        printf(STR_FMT "\n", STR_ARG(buf_str(&k->json)));
    if (rc == EXIT_GOOD && k->o.repeat > 1) {
        qsort(us, k->o.repeat, sizeof(*us), by_value);
        fprintf(stderr, "%llu calls: min %llu, median %llu, p99 %llu us\n",
                (unsigned long long)k->o.repeat, (unsigned long long)us[0],
                (unsigned long long)us[k->o.repeat / 2],
                (unsigned long long)us[k->o.repeat * 99 / 100]);
    }
    free(us);
    return rc;
}

int cmd_call(int argc, char **argv)
{
    struct caller k = {0};
    struct buf args;
    struct err e = {0};
    struct directory *d = NULL;
    int rc = parse(argc, argv, &k.o);

    if (rc != EXIT_GOOD)
        return rc;
    arena_init(&k.arena);
    buf_init(&args, INPUT_MAX);
    if (!read_args(k.o.args, &args))
        err_set(&e, "cannot read %s", k.o.args);
    else if (str_starts(str_from(k.o.target), STR("dubbo://")))
        d = from_url(&k, str_from(k.o.target), &e);
    else
        d = from_registry(&k, str_from(k.o.target), &e);
    if (d == NULL || !resolve_all(d, &e)) {
        fprintf(stderr, "dubbogate: %s\n", e.text);
        directory_put(d);
        rc = k.o.registry != NULL ? EXIT_NO_PROVIDER : EXIT_LOCAL;
    } else {
        if (d->n == 0)
            fprintf(
                stderr,
                "dubbogate: no provider node; instances of applications (see ls) are only known to a running gateway\n");
        init(&k);
        hand_over(&k, d);
        rc = run_all(&k, str_trim(buf_str(&args)));
        finish(&k);
    }
    buf_free(&args);
    arena_free(&k.arena);
    return rc;
}
