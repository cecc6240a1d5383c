#include "registry/listing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* the blocking calls are declared for the threaded library only */
#define THREADED
#include <zookeeper/zookeeper.h>

#include "base/clock.h"
#include "registry/instance.h"
#include "registry/refkey.h"
#include "registry/url.h"
#include "registry/zk.h"

enum { CONNECT_MS = 5000, SESSION_MS = 10000, PATH_LEN = 4096, STEP_US = 10000 };

/* One command, one connection. */
static zhandle_t *open_now;

static void on_event(zhandle_t *h, int type, int state, const char *path, void *ctx)
{
}

/* A refused connection is told once, by us. */
static void on_log(const char *line)
{
}

static bool numeric_hosts(struct str hosts, struct buf *out, struct err *e)
{
    struct resolver *r = resolver_new(NULL);

    zk_resolve_hosts(hosts, r, out, e);
    resolver_free(r);
    return !out->failed && out->len != 0;
}

static void wait_connected(void)
{
    uint64_t until = clock_ms() + CONNECT_MS;

    while (open_now != NULL && zoo_state(open_now) != ZOO_CONNECTED_STATE) {
        if (clock_ms() > until)
            listing_end();
        else
            usleep(STEP_US);
    }
}

static zhandle_t *connect_once(const char *address, struct err *e)
{
    struct zk_target t = {.session_timeout_ms = SESSION_MS, .on_log = on_log};
    struct zk_address parts;
    struct arena a;
    struct buf hosts;

    if (open_now != NULL)
        return open_now;
    arena_init(&a);
    buf_init(&hosts, 8192);
    if (zk_address_of(address, &a, &parts, e) && numeric_hosts(parts.hosts, &hosts, e)) {
        t.auth = parts.auth;
        open_now = zk_connect(buf_str(&hosts), &t, on_event, NULL);
        wait_connected();
        if (open_now == NULL)
            err_set(e, STR_FMT " does not answer", STR_ARG(parts.hosts));
    }
    buf_free(&hosts);
    arena_free(&a);
    return open_now;
}

void listing_end(void)
{
    if (open_now != NULL)
        zookeeper_close(open_now);
    open_now = NULL;
}

static int by_text(const void *a, const void *b)
{
    return str_cmp(*(const struct str *)a, *(const struct str *)b);
}

/* Turns a node name into what is listed; false: not for the list. */
typedef bool entry_fn(struct str node, struct arena *a, struct str *out);

static bool interface_entry(struct str node, struct arena *a, struct str *out)
{
    static const char *const others[] = {"config", "mapping", "metadata"};
    struct refkey k;
    struct err e;

    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        if (str_is(node, others[i]))
            return false;
    }
    if (!refkey_make(node, STR_NONE, STR_NONE, &k, &e))
        return false;
    *out = arena_str(a, node);
    return true;
}

static bool url_entry(struct str node, struct arena *a, struct str *out)
{
    struct err e;

    return url_decode_node(node, a, out, &e);
}

static bool children(zhandle_t *h, const char *path, struct arena *a, entry_fn *entry,
                     struct listing *out, struct err *e)
{
    struct String_vector v = {0};
    int rc = zoo_get_children(h, path, 0, &v);

    *out = (struct listing){0};
    if (rc == ZNONODE)
        return true;
    if (rc != ZOK) {
        err_set(e, "%s: %s", path, zerror(rc));
        return false;
    }
    out->names = arena_alloc(a, ((size_t)v.count + 1) * sizeof(struct str));
    for (int i = 0; i < v.count; i++)
        out->n += entry(str_from(v.data[i]), a, &out->names[out->n]) ? 1U : 0U;
    deallocate_String_vector(&v);
    qsort(out->names, out->n, sizeof(struct str), by_text);
    return true;
}

bool listing_interfaces(const char *address, const char *root, struct arena *a, struct listing *out,
                        struct err *e)
{
    zhandle_t *h = connect_once(address, e);

    return h != NULL && children(h, root, a, interface_entry, out, e);
}

bool listing_providers(const char *address, const char *root, struct str interface, struct arena *a,
                       struct listing *out, struct err *e)
{
    zhandle_t *h = connect_once(address, e);
    char path[PATH_LEN];

    if (h == NULL)
        return false;
    snprintf(path, sizeof(path), "%s/" STR_FMT "/providers", root, STR_ARG(interface));
    return children(h, path, a, url_entry, out, e);
}

bool listing_mapped(const char *address, const char *root, struct arena *a, struct listing *out,
                    struct err *e)
{
    zhandle_t *h = connect_once(address, e);
    char path[PATH_LEN];

    if (h == NULL)
        return false;
    snprintf(path, sizeof(path), "%s/mapping", root);
    return children(h, path, a, interface_entry, out, e);
}

static size_t count_instances(zhandle_t *h, const char *root, struct str app)
{
    struct String_vector v = {0};
    char path[PATH_LEN];
    size_t n = 0;

    snprintf(path, sizeof(path), "%s/" STR_FMT, zk_services_root(root), STR_ARG(app));
    if (zoo_get_children(h, path, 0, &v) != ZOK)
        return 0;
    n = (size_t)v.count;
    deallocate_String_vector(&v);
    return n;
}

bool listing_applications(const char *address, const char *root, struct str interface,
                          struct arena *a, struct listing *out, size_t **n_instances, struct err *e)
{
    zhandle_t *h = connect_once(address, e);
    char path[PATH_LEN];
    char *text = arena_alloc(a, MAPPING_TEXT_MAX);
    int n = MAPPING_TEXT_MAX;

    *out = (struct listing){.names = arena_alloc(a, MAPPING_APPS_MAX * sizeof(struct str))};
    *n_instances = arena_alloc(a, MAPPING_APPS_MAX * sizeof(size_t));
    if (h == NULL)
        return false;
    snprintf(path, sizeof(path), "%s/mapping/" STR_FMT, root, STR_ARG(interface));
    if (zoo_get(h, path, 0, text, &n, NULL) != ZOK || n <= 0)
        return true; /* it went meanwhile */
    out->n = mapping_parse((struct str){text, (size_t)n}, out->names);
    for (size_t i = 0; i < out->n; i++)
        (*n_instances)[i] = count_instances(h, root, out->names[i]);
    return true;
}

static bool read_definition(zhandle_t *h, const char *path, struct arena *a,
                            struct definition_view *out, struct err *e)
{
    char *text = malloc(DEFINITION_NODE_MAX);
    int n = DEFINITION_NODE_MAX;
    int rc = text != NULL ? zoo_get(h, path, 0, text, &n, NULL) : ZSYSTEMERROR;
    bool ok = rc == ZNONODE;

    if (rc == ZOK && n > 0)
        ok = definition_parse((struct str){text, (size_t)n}, a, out, e);
    else if (!ok)
        err_set(e, "%s: %s", path, rc != ZOK ? zerror(rc) : "the node is empty");
    free(text);
    return ok;
}

bool listing_methods(const char *address, const char *root, const struct provider *p,
                     struct arena *a, struct definition_view *out, struct err *e)
{
    zhandle_t *h = connect_once(address, e);
    struct buf path;
    bool ok = h != NULL;

    *out = (struct definition_view){0};
    buf_init(&path, PATH_LEN);
    if (ok && p->application.n != 0 && zk_metadata_path(root, p, &path)) {
        buf_add_u8(&path, '\0');
        ok = read_definition(h, (const char *)path.data, a, out, e);
    }
    buf_free(&path);
    return ok;
}
