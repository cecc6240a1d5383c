#include <stdlib.h>
#include <string.h>

#include "base/fatal.h"
#include "registry/zk.h"

/*
 * Which ACL our nodes get (docs/REGISTRY.md section 1.1).  Dubbo 3.x providers with credentials create everything for
 * themselves alone, older ones leave it open to all; whoever shares a service with them does as they did:
 * a node gets the ACL of its parent.  Without credentials nobody is asked and nodes are open, as Dubbo's.
 */

static char *copy(const char *text)
{
    char *c = strdup(text != NULL ? text : "");

    if (c == NULL)
        fatal("out of memory");
    return c;
}

void zk_acl_free(struct ACL_vector *acl)
{
    for (int32_t i = 0; i < acl->count; i++) {
        free(acl->data[i].id.scheme);
        free(acl->data[i].id.id);
    }
    free(acl->data);
    *acl = (struct ACL_vector){0};
}

void zk_acl_copy(const struct ACL_vector *from, struct ACL_vector *to)
{
    size_t n = from->count > 0 ? (size_t)from->count : 0;

    to->count = (int32_t)n;
    to->data = xcalloc(n + 1, sizeof(struct ACL));
    for (size_t i = 0; i < n; i++) {
        to->data[i].perms = from->data[i].perms;
        to->data[i].id.scheme = copy(from->data[i].id.scheme);
        to->data[i].id.id = copy(from->data[i].id.id);
    }
}

/* Who may not administer a node is shown "user:x" for each digest: a node with that belongs to nobody. */
static bool is_masked(const struct Id *id)
{
    size_t n = strlen(id->id);

    return strcmp(id->scheme, "digest") == 0 && n >= 2 && strcmp(id->id + n - 2, ":x") == 0;
}

void zk_acl_inherit(const struct ACL_vector *parent, struct ACL_vector *out)
{
    bool known = parent != NULL && parent->count > 0;

    for (int32_t i = 0; known && i < parent->count; i++)
        known = !is_masked(&parent->data[i].id);
    zk_acl_free(out);
    zk_acl_copy(known ? parent : &ZOO_CREATOR_ALL_ACL, out);
}

const struct ACL_vector *zk_acl_of(const struct zk_ref *zr)
{
    return zr->acl.count != 0 ? &zr->acl : &ZOO_OPEN_ACL_UNSAFE;
}
