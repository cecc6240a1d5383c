#include "registry/consumer.h"

#include <stdlib.h>
#include <string.h>

#include "base/fatal.h"

enum { OWN_MAX = 12 };

struct params {
    struct url_param *p;
    size_t n;
};

static void add(struct params *all, struct str key, struct str value)
{
    all->p[all->n++] = (struct url_param){key, value};
}

static bool has(const struct params *all, size_t n, struct str key)
{
    for (size_t i = 0; i < n; i++) {
        if (str_eq(all->p[i].key, key))
            return true;
    }
    return false;
}

static int by_key(const void *a, const void *b)
{
    const struct url_param *x = a;
    const struct url_param *y = b;

    return str_cmp(x->key, y->key);
}

/* "gateway-1" of version 1.4.2. */
static struct str release(char out[24])
{
    struct str minor = STR_NONE;
    struct str major = str_cut(STR(VERSION), '.', &minor);
    size_t n = sizeof("gateway-") - 1;

    memcpy(out, "gateway-", n);
    for (size_t i = 0; i < major.n && n < 23; i++)
        out[n++] = major.p[i];
    return (struct str){out, n};
}

static void add_own(struct params *all, const struct refkey *k, const struct consumer_opts *o,
                    struct str our_release)
{
    if (o->application.n != 0)
        add(all, STR("application"), o->application);
    add(all, STR("category"), STR("consumers"));
    add(all, STR("check"), STR("false"));
    add(all, STR("dubbo"), STR("2.0.2"));
    add(all, STR("generic"), STR("true"));
    if (k->group.n != 0)
        add(all, STR("group"), k->group);
    if (o->instance.n != 0)
        add(all, STR("instance"), o->instance);
    add(all, STR("interface"), k->interface);
    add(all, STR("release"), our_release);
    add(all, STR("side"), STR("consumer"));
    add(all, STR("sticky"), STR("false"));
    if (k->version.n != 0)
        add(all, STR("version"), k->version);
    ASSERT(all->n <= OWN_MAX);
}

static void print(const struct refkey *k, struct str ip, const struct params *all, struct buf *out)
{
    bool v6 = str_find(ip, ':') != ip.n;

    buf_add_str(out, STR("consumer://"));
    buf_add_str(out, v6 ? STR("[") : STR(""));
    buf_add_str(out, ip);
    buf_add_str(out, v6 ? STR("]/") : STR("/"));
    buf_add_str(out, k->interface);
    for (size_t i = 0; i < all->n; i++) {
        buf_add_u8(out, i == 0 ? '?' : '&');
        url_encode(all->p[i].key, out);
        buf_add_u8(out, '=');
        url_encode(all->p[i].value, out);
    }
}

void consumer_url(const struct refkey *k, const struct consumer_opts *o, struct buf *out)
{
    struct params all = {.p = xcalloc(OWN_MAX + o->n_parameters, sizeof(*all.p))};
    char release_text[24];
    size_t n_own = 0;

    add_own(&all, k, o, release(release_text));
    n_own = all.n;
    for (size_t i = 0; i < o->n_parameters; i++) {
        if (o->parameters[i].key.n != 0 && !has(&all, n_own, o->parameters[i].key))
            add(&all, o->parameters[i].key, o->parameters[i].value);
    }
    qsort(all.p, all.n, sizeof(*all.p), by_key);
    print(k, o->ip, &all, out);
    free(all.p);
}

void consumer_node(const struct refkey *k, const struct consumer_opts *o, struct buf *out)
{
    struct buf plain;

    buf_init(&plain, URL_MAX);
    consumer_url(k, o, &plain);
    if (plain.failed)
        out->failed = true;
    else
        url_encode(buf_str(&plain), out);
    buf_free(&plain);
}
