#include "registry/listing.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* the blocking calls are declared for the threaded library only */
#define THREADED
#include <zookeeper/zookeeper.h>

#include "base/clock.h"
#include "registry/url.h"

enum { CONNECT_MS = 5000, PATH_LEN = 4096, STEP_US = 10000 };

/* One command, one connection. */
static zhandle_t *open_now;

static void on_event(zhandle_t *h, int type, int state, const char *path, void *ctx)
{
}

/* zookeeper://h1:p?backup=h2:p,h3:p -> h1:p,h2:p,h3:p */
static bool host_list(const char *address, char *out, size_t cap)
{
    struct str rest = str_from(address);
    struct str query = STR_NONE;
    struct str host = STR_NONE;
    size_t n = 0;

    if (!str_starts(rest, STR("zookeeper://")))
        return false;
    host = str_cut(str_sub(rest, 12, rest.n), '?', &query);
    while (host.n != 0 && host.p[host.n - 1] == '/')
        host.n--;
    if (host.n == 0 || !str_copy(host, out, cap))
        return false;
    n = host.n;
    while (query.n != 0) {
        struct str one = str_cut(query, '&', &query);

        if (!str_starts(one, STR("backup=")))
            continue;
        if (cap - n < 2 || !str_copy(str_sub(one, 7, one.n), out + n + 1, cap - n - 1))
            return false;
        out[n] = ',';
        n += one.n - 6;
    }
    return true;
}

static zhandle_t *connect_once(const char *address, struct err *e)
{
    char hosts[2048];
    uint64_t until = clock_ms() + CONNECT_MS;

    if (open_now != NULL)
        return open_now;
    if (!host_list(address, hosts, sizeof(hosts))) {
        err_set(e, "\"%s\" is no address such as zookeeper://127.0.0.1:2181", address);
        return NULL;
    }
    zoo_set_debug_level(ZOO_LOG_LEVEL_ERROR);
    open_now = zookeeper_init(hosts, on_event, 10000, NULL, NULL, 0);
    while (open_now != NULL && zoo_state(open_now) != ZOO_CONNECTED_STATE) {
        if (clock_ms() > until) {
            listing_end();
            break;
        }
        usleep(STEP_US);
    }
    if (open_now == NULL)
        err_set(e, "%s does not answer", address);
    return open_now;
}

void listing_end(void)
{
    if (open_now != NULL)
        zookeeper_close(open_now);
    open_now = NULL;
}

static bool children(zhandle_t *h, const char *path, struct arena *a, bool decode,
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
    for (int i = 0; i < v.count; i++) {
        struct err ignored;

        if (!decode)
            out->names[out->n++] = arena_str(a, str_from(v.data[i]));
        else if (url_decode_node(str_from(v.data[i]), a, &out->names[out->n], &ignored))
            out->n++;
    }
    deallocate_String_vector(&v);
    return true;
}

bool listing_interfaces(const char *address, const char *root, struct arena *a, struct listing *out,
                        struct err *e)
{
    zhandle_t *h = connect_once(address, e);

    return h != NULL && children(h, root, a, false, out, e);
}

bool listing_providers(const char *address, const char *root, struct str interface, struct arena *a,
                       struct listing *out, struct err *e)
{
    zhandle_t *h = connect_once(address, e);
    char path[PATH_LEN];

    if (h == NULL)
        return false;
    snprintf(path, sizeof(path), "%s/" STR_FMT "/providers", root, STR_ARG(interface));
    return children(h, path, a, true, out, e);
}
