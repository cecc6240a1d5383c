/*
 * ROOT/metadata/IFACE[/VERSION][/GROUP]/provider/APPLICATION: what a provider published of its methods.  Read, never
 * watched: a watch per reference would cost more than the few reads after a change (docs/REGISTRY.md section 7.1).
 */
#include <string.h>

#include "base/log.h"
#include "registry/reference_definitions.h"
#include "registry/url.h"
#include "registry/zk.h"

/* A level of the path: a text from outside must not lead elsewhere. */
static bool is_level(struct str s)
{
    return str_find(s, '/') == s.n && !str_is(s, ".") && !str_is(s, "..") && url_text_ok(s);
}

static bool add_level(struct str s, struct buf *path)
{
    if (s.n == 0)
        return true;
    if (!is_level(s))
        return false;
    buf_add_u8(path, '/');
    buf_add_str(path, s);
    return true;
}

bool zk_metadata_path(const char *root, const struct provider *p, struct buf *path)
{
    buf_printf(path, "%s/metadata", root);
    return p->interface.n != 0 && add_level(p->interface, path) && add_level(p->version, path) &&
           add_level(p->group, path) && add_level(STR("provider"), path) &&
           add_level(p->application, path) && !path->failed;
}

/* The application is the last level of the path. */
static struct str application_in(const char *path)
{
    const char *slash = strrchr(path, '/');

    return str_from(slash != NULL ? slash + 1 : path);
}

static void on_data(struct zk_session *s, struct zk_op *op)
{
    struct reference *ref = cache_find(s->zk->source->home, str_from(op->key));

    if (ref == NULL || ref->source != s->zk->source || zk_is_lost(op->rc))
        return;
    if (op->rc != ZOK && op->rc != ZNONODE)
        log_info("registry", "%s cannot be read: %s", op->path, zk_why(op));
    if (op->rc == ZOK && op->data != NULL)
        reference_on_definition(ref, application_in(op->path), (struct str){op->data, op->n_data},
                                op->stat.mzxid);
    else
        reference_on_definition(ref, application_in(op->path), STR_NONE, 0);
}

bool zk_describe(void *kind, struct reference *ref, const struct provider *p)
{
    const struct zk_ref *zr = ref->kind_ref;
    struct zk_session *s = zr != NULL ? zr->path->session : NULL;
    struct zk_op *op = NULL;
    struct buf path;

    if (s == NULL || !zk_can_send(s))
        return false;
    buf_init(&path, 4096);
    if (zk_metadata_path(s->zk->source->conf.root, p, &path)) {
        buf_add_u8(&path, '\0');
        op = zk_op_new(s, ref->key_text, (const char *)path.data, on_data);
        zk_op_sent(op, zoo_awget(s->handle->h, op->path, NULL, NULL, zk_on_data, op));
    }
    buf_free(&path);
    return op != NULL;
}
