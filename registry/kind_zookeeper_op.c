#include <stdlib.h>
#include <string.h>

#include "base/fatal.h"
#include "base/hash.h"
#include "registry/zk.h"

enum { READ_APART_MS = 100, READ_APART_LONG_MS = 250, LONG_LIST = 10000 };

uint64_t zk_read_apart_ms(size_t n_nodes, uint64_t now_ms)
{
    size_t share = n_nodes < LONG_LIST ? n_nodes : LONG_LIST;
    uint64_t apart = READ_APART_MS + (READ_APART_LONG_MS - READ_APART_MS) * share / LONG_LIST;

    return apart +
           hash_bytes(&now_ms, sizeof(now_ms)) % (apart / 4); /* the seed is the process's own */
}

const char *zk_why(const struct zk_op *op)
{
    return op->too_large ? "it is larger than this program reads" : zerror(op->rc);
}

static char *copy(const char *text)
{
    char *c = text != NULL ? strdup(text) : NULL;

    if (text != NULL && c == NULL)
        fatal("out of memory");
    return c;
}

void zk_op_free(struct zk_op *op)
{
    struct zk_handle *h = op->handle;

    list_remove(&op->link);
    for (size_t i = 0; i < op->n_names; i++)
        free(op->names[i]);
    free(op->names);
    zk_acl_free(&op->acl);
    free(op->data);
    free(op->key);
    free(op->path);
    free(op->memory);
    free(op);
    if (--h->n_ops == 0 && h->closed)
        free(h);
}

static void run_op(struct registry_post *p)
{
    struct zk_op *op = container_of(p, struct zk_op, post);
    struct zk_session *s = op->handle->session;

    /* answers of a handle that was given up are of no interest: everything is read again */
    if (op->handle == s->handle) {
        if (!zk_is_lost(op->rc))
            zk_session_works(s);
        op->done(s, op);
    }
    zk_op_free(op);
}

struct zk_op *zk_op_new(struct zk_session *s, const char *key, const char *path,
                        void (*done)(struct zk_session *s, struct zk_op *op))
{
    struct zk_op *op = xcalloc(1, sizeof(*op));

    ASSERT(s->handle != NULL);
    op->post.run = run_op;
    op->handle = s->handle;
    op->done = done;
    op->key = copy(key);
    op->path = copy(path);
    list_init(&op->link);
    list_add(&s->handle->ops, &op->link);
    s->handle->n_ops++;
    return op;
}

/* In the library's thread, or in ours when the call could not be sent. */
static void answer(struct zk_op *op, int rc)
{
    op->rc = rc;
    op->answered = true;
    mailbox_push(&op->handle->session->zk->source->home->box, &op->post.mail);
}

void zk_op_sent(struct zk_op *op, int rc)
{
    if (rc != ZOK)
        answer(op, rc);
}

bool zk_is_lost(int rc)
{
    return rc == ZCONNECTIONLOSS || rc == ZOPERATIONTIMEOUT || rc == ZSESSIONEXPIRED ||
           rc == ZINVALIDSTATE || rc == ZCLOSING || rc == ZSESSIONMOVED;
}

/* ---------------------------------------------------------------- in the library's thread */

static struct zk_op *op_of(const void *data)
{
    /* NOLINTNEXTLINE(performance-no-int-to-ptr): the library's contexts are const */
    return (struct zk_op *)(uintptr_t)data;
}

static void refuse(struct zk_op *op)
{
    op->too_large = true;
    answer(op, ZMARSHALLINGERROR);
}

void zk_on_strings(int rc, const struct String_vector *v, const struct Stat *stat, const void *data)
{
    struct zk_op *op = op_of(data);
    size_t n = rc == ZOK && v != NULL && v->count > 0 ? (size_t)v->count : 0;

    if (rc == ZOK && stat != NULL)
        op->stat = *stat;
    if (n > (op->max_names != 0 ? op->max_names : STORE_URLS_MAX)) { /* such a change is not taken (docs/ROBUSTNESS.md section 3.1) */
        refuse(op);
        return;
    }
    op->names = xcalloc(n + 1, sizeof(char *));
    for (size_t i = 0; i < n; i++)
        op->names[op->n_names++] = copy(v->data[i]);
    answer(op, rc);
}

void zk_on_data(int rc, const char *value, int len, const struct Stat *stat, const void *data)
{
    struct zk_op *op = op_of(data);
    size_t n = rc == ZOK && value != NULL && len > 0 ? (size_t)len : 0;

    if (rc == ZOK && stat != NULL)
        op->stat = *stat;
    if (n > ZK_DATA_MAX) {
        refuse(op);
        return;
    }
    op->data = xcalloc(1, n + 1);
    if (n != 0)
        memcpy(op->data, value, n);
    op->n_data = n;
    answer(op, rc);
}

void zk_on_acl(int rc, struct ACL_vector *acl, struct Stat *stat, const void *data)
{
    struct zk_op *op = op_of(data);

    if (rc == ZOK && acl != NULL)
        zk_acl_copy(acl, &op->acl);
    answer(op, rc);
}

void zk_on_stat(int rc, const struct Stat *stat, const void *data)
{
    struct zk_op *op = op_of(data);

    if (rc == ZOK && stat != NULL)
        op->stat = *stat;
    answer(op, rc);
}

void zk_on_string(int rc, const char *value, const void *data)
{
    answer(op_of(data), rc);
}

void zk_on_void(int rc, const void *data)
{
    answer(op_of(data), rc);
}
