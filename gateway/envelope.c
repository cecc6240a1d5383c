#include "gateway/envelope.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/fatal.h"
#include "base/log.h"
#include "codec/invoke.h"

enum { ENVELOPE_MAX = 20480 };

static void attach(struct buf *b, const char *name, struct str value)
{
    if (value.n == 0)
        return;
    /* texts of provider URLs were checked when they were read */
    if (!invoke_attachment(str_from(name), value, b))
        log_warn("refs", "attachment %s of a provider is no UTF-8 and is left out", name);
}

static void put_attachments(const struct refkey *k, const struct provider *p, struct str version,
                            struct str application, struct buf *b)
{
    invoke_attachments_begin(b);
    attach(b, "path", p->path.n != 0 ? p->path : k->interface);
    attach(b, "interface", k->interface);
    attach(b, "version", version);
    attach(b, "group", p->group.n != 0 ? p->group : k->group);
    attach(b, "token", p->token);
    attach(b, "generic", STR("true"));
    attach(b, "remote.application", application);
}

static bool same(const struct envelope *e, struct str bytes, size_t n_prefix)
{
    return e->n_prefix == n_prefix && e->n_prefix + e->n_attachments == bytes.n &&
           memcmp(e->bytes, bytes.p, bytes.n) == 0;
}

static struct envelope *new_envelope(struct str bytes, size_t n_prefix)
{
    struct envelope *e = xcalloc(1, sizeof(*e) + bytes.n);

    e->n_prefix = (uint32_t)n_prefix;
    e->n_attachments = (uint32_t)(bytes.n - n_prefix);
    memcpy(e->bytes, bytes.p, bytes.n);
    return e;
}

struct envelope *envelope_get(const struct refkey *k, const struct provider *p,
                              struct str application, struct envelope *like)
{
    struct str version = str_is(k->version, "*") ? p->version : k->version;
    struct buf b;
    size_t n_prefix = 0;

    buf_init(&b, ENVELOPE_MAX);
    invoke_prefix(k->interface, version, &b);
    n_prefix = b.len;
    put_attachments(k, p, version, application, &b);
    if (b.failed)
        fatal("out of memory");
    if (like == NULL || !same(like, buf_str(&b), n_prefix))
        like = new_envelope(buf_str(&b), n_prefix);
    like->users++;
    buf_free(&b);
    return like;
}

void envelope_put(struct envelope *e)
{
    if (e == NULL)
        return;
    ASSERT(e->users > 0);
    if (--e->users == 0)
        free(e);
}
