#include "registry/kind.h"

#include "registry/registry.h"

static const struct registry_kind *const kinds[] = {
    &registry_kind_zookeeper,
    &registry_kind_static,
};

const struct registry_kind *registry_kind_find(struct str address)
{
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        struct str scheme = str_from(kinds[i]->scheme);

        if (str_starts(address, scheme) &&
            str_starts(str_sub(address, scheme.n, address.n), STR("://")))
            return kinds[i];
    }
    return NULL;
}

bool registry_check_address(const char *address, struct err *e)
{
    const struct registry_kind *k = registry_kind_find(str_from(address));

    if (k == NULL) {
        err_set(e, "\"%s\" is no registry address", address);
        return false;
    }
    return k->check(address, e);
}
