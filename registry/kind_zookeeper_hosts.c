#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "registry/url.h"
#include "registry/zk.h"

/* "user:password", as the digest scheme wants it. */
static bool credentials_of(const struct url *u, struct arena *a, struct str *auth, struct err *e)
{
    *auth = STR_NONE;
    if (u->user.n == 0 && u->password.n == 0)
        return true;
    if (u->user.n == 0 || u->password.n == 0) {
        err_set(e,
                "the address needs a user and a password, or neither: zookeeper://USER:PASSWORD@…");
        return false;
    }
    *auth = arena_printf(a, STR_FMT ":" STR_FMT, STR_ARG(u->user), STR_ARG(u->password));
    return true;
}

bool zk_address_of(const char *address, struct arena *a, struct zk_address *out, struct err *e)
{
    struct str backup;
    struct url u;

    if (!url_parse(str_from(address), &u, e))
        return false;
    if (!str_is(u.scheme, "zookeeper")) {
        err_set(e, "no address such as zookeeper://127.0.0.1:2181");
        return false;
    }
    if (!credentials_of(&u, a, &out->auth, e))
        return false;
    if (u.path.n != 0) {
        err_set(e, "a path in the address is not supported: the tree of the registry is \"root\", "
                   "what stands before it \"chroot\"");
        return false;
    }
    for (size_t i = 0; i < u.n_params; i++) {
        if (!str_is(u.params[i].key, "backup")) {
            err_set(e, "the address takes no parameter \"" STR_FMT "\", only \"backup\"",
                    STR_ARG(u.params[i].key));
            return false;
        }
    }
    backup = url_param(&u, STR("backup"));
    out->hosts = arena_printf(a, STR_FMT "%s" STR_FMT, STR_ARG(u.authority),
                              backup.n != 0 ? "," : "", STR_ARG(backup));
    return true;
}

/* "host:port", "host", "[v6]:port" */
static bool cut_port(struct str text, struct str *host, uint16_t *port)
{
    size_t colon = text.n;
    uint64_t n = ZK_PORT;

    while (colon > 0 && text.p[colon - 1] != ':' && text.p[colon - 1] != ']')
        colon--;
    *host = text;
    if (colon > 0 && text.p[colon - 1] == ':') {
        *host = str_sub(text, 0, colon - 1);
        if (!str_to_u64(str_sub(text, colon, text.n), 65535, &n) || n == 0)
            return false;
    }
    if (host->n > 2 && host->p[0] == '[' && host->p[host->n - 1] == ']')
        *host = str_sub(*host, 1, host->n - 1);
    *port = (uint16_t)n;
    return host->n != 0;
}

static bool same_address(const union address *a, const union address *b)
{
    if (a->sa.sa_family != b->sa.sa_family)
        return false;
    if (a->sa.sa_family == AF_INET)
        return a->v4.sin_port == b->v4.sin_port && a->v4.sin_addr.s_addr == b->v4.sin_addr.s_addr;
    return a->v6.sin6_port == b->v6.sin6_port &&
           memcmp(&a->v6.sin6_addr, &b->v6.sin6_addr, sizeof(a->v6.sin6_addr)) == 0;
}

/* All that resolve, each once. */
static size_t resolve_all(struct str hosts, struct resolver *r, union address out[ZK_HOSTS_MAX],
                          struct err *e)
{
    size_t n = 0;

    while (hosts.n != 0 && n < ZK_HOSTS_MAX) {
        struct str one = str_trim(str_cut(hosts, ',', &hosts));
        struct str host = STR_NONE;
        uint16_t port = 0;
        bool known = false;

        if (one.n == 0)
            continue;
        if (!cut_port(one, &host, &port)) {
            err_set(e, STR_FMT " is no host and port", STR_ARG(one));
            continue;
        }
        if (!resolve(r, host, port, &out[n], e))
            continue;
        for (size_t i = 0; i < n; i++)
            known = known || same_address(&out[i], &out[n]);
        n += known ? 0U : 1U;
    }
    return n;
}

static void add_address(const union address *a, struct buf *out)
{
    bool v6 = a->sa.sa_family == AF_INET6;

    if (out->len != 0)
        buf_add_u8(out, ',');
    if (v6)
        buf_add_u8(out, '[');
    address_print(a, out);
    buf_printf(out, "%s:%u", v6 ? "]" : "", (unsigned)ntohs(v6 ? a->v6.sin6_port : a->v4.sin_port));
}

void zk_resolve_hosts(struct str hosts, struct resolver *r, struct buf *out, struct err *e)
{
    union address v[ZK_HOSTS_MAX];
    size_t n = resolve_all(hosts, r, v, e);

    for (size_t i = 0; i < n; i++)
        add_address(&v[i], out);
    /* The library steps through its list two at a time: with an even number of entries it tries only half of
     * them and never pauses (ZOOKEEPER-2466; docs/ROBUSTNESS.md section 0.1). */
    if (n != 0 && n % 2 == 0)
        add_address(&v[0], out);
}

void zk_print_address(const union address *a, char *out, size_t cap)
{
    struct buf b;

    buf_init(&b, 256);
    add_address(a, &b);
    snprintf(out, cap, STR_FMT, STR_ARG(buf_str(&b)));
    buf_free(&b);
}

static void on_auth(int rc, const void *data)
{
    /* a refusal comes as a session event */
}

zhandle_t *zk_connect(struct str hosts, const struct zk_target *t, watcher_fn watcher, void *ctx)
{
    zhandle_t *h = NULL;
    struct buf to;

    buf_init(&to, 16384);
    buf_add_str(&to, hosts);
    buf_add_str(&to, t->chroot);

    buf_add_u8(&to, '\0');
    if (!to.failed)
        h = zookeeper_init2((const char *)to.data, watcher, t->session_timeout_ms, NULL, ctx, 0,
                            t->on_log);
    buf_free(&to);
    if (h == NULL)
        return NULL;
    zoo_set_servers_resolution_delay(h, -1); /* they are numeric */
    /* the library says it again on every connection, before anything else */
    if (t->auth.n != 0)
        (void)zoo_add_auth(h, "digest", t->auth.p, (int)t->auth.n, on_auth, NULL);
    return h;
}

/* The local address that the kernel would use towards the server: nothing is sent (decision R10). */
static bool local_address(const union address *server, union address *out)
{
    bool v6 = server->sa.sa_family == AF_INET6;
    socklen_t len = sizeof(*out);
    int fd = socket(server->sa.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool ok = false;

    if (fd < 0)
        return false;
    ok = connect(fd, &server->sa,
                 v6 ? (socklen_t)sizeof(server->v6) : (socklen_t)sizeof(server->v4)) == 0 &&
         getsockname(fd, &out->sa, &len) == 0;
    close(fd);
    return ok;
}

static const char *configured_ip(const struct zk *z)
{
    const char *ip = z->source->home->opts.consumer_address;

    return ip != NULL && ip[0] != '\0' && strcmp(ip, "auto") != 0 ? ip : NULL;
}

struct str zk_own_ip(const struct zk *z)
{
    if (z->consumer_ip[0] != '\0')
        return str_from(z->consumer_ip);
    return configured_ip(z) != NULL ? str_from(configured_ip(z)) : z->source->known.consumer_ip;
}

void zk_find_consumer_ip(struct zk *z, const union address *server)
{
    const char *configured = configured_ip(z);
    union address a = {.sa.sa_family = AF_UNSPEC};
    struct buf b;

    if (z->consumer_ip[0] != '\0')
        return;
    if (configured != NULL) {
        snprintf(z->consumer_ip, sizeof(z->consumer_ip), "%s", configured);
        return;
    }
    if (server->sa.sa_family == AF_UNSPEC)
        return; /* lost again before we could look */
    if (!local_address(server, &a)) {
        log_warn("registry",
                 "registry %s: no consumer nodes: our own address is not known; "
                 "set consumer.address",
                 z->source->conf.name);
        return;
    }
    buf_init(&b, sizeof(z->consumer_ip) - 1);
    address_print(&a, &b);
    snprintf(z->consumer_ip, sizeof(z->consumer_ip), STR_FMT, STR_ARG(buf_str(&b)));
    buf_free(&b);
    if (str_is(z->source->known.consumer_ip, z->consumer_ip))
        return;
    z->source->known.consumer_ip = arena_str(&z->source->home->arena, str_from(z->consumer_ip));
    registry_mark_dirty(z->source->home);
}
