/*
 * Published rules that are not obeyed as they stand: counted, in the registry's report, and told to who asks about a reference
 * (docs/OPERATIONS.md section 6).
 */
#include <stdlib.h>
#include <string.h>

#include "base/fatal.h"
#include "registry/zk_config.h"

bool zk_bad_note(const struct zk *z, char **at, const char *why)
{
    struct counter *c = &z->source->home->numbers.bad_rules;
    bool same = why != NULL && *at != NULL && strcmp(why, *at) == 0;

    if (same || (why == NULL && *at == NULL))
        return false;
    counter_set(c, counter_get(c) + (why != NULL) - (*at != NULL));
    free(*at);
    *at = why != NULL ? strdup(why) : NULL;
    if (why != NULL && *at == NULL)
        fatal("out of memory");
    return why != NULL;
}

/* A member of `list`; what is in force says nothing. */
static void add(json_t *list, struct str name, bool in_force, const char *error)
{
    json_t *o = json_object();

    json_object_set_new(o, "name", json_stringn(name.p, name.n));
    json_object_set_new(o, "in_force", json_boolean(in_force));
    if (error != NULL)
        json_object_set_new(o, "error", json_string(error));
    json_array_append_new(list, o);
}

static const char *error_of(const struct zk_config_node *n)
{
    if (n->bad != NULL)
        return n->bad;
    if (n->kind == RULE_NODE_SCRIPT)
        return "script rules are not run";
    return n->known && n->rules == NULL ? "it is switched off, or says nothing" : NULL;
}

static void add_set(json_t *list, const struct zk_path *p, size_t i, bool all)
{
    static const char *const names[ZK_BAD_RULES] = {
        [ZK_BAD_CONFIGURATORS] = "/configurators",
        [ZK_BAD_ROUTERS] = "/routers",
        [ZK_BAD_APPS] = "",
    };
    bool in_force = i < ARRAY_LEN(p->rules) && p->rules[i] != NULL;
    struct arena a;

    if (p->bad[i] == NULL && !(all && in_force))
        return;
    arena_init(&a);
    add(list, arena_printf(&a, "%s%s", p->interface, names[i]), in_force, p->bad[i]);
    arena_free(&a);
}

static void add_directory(json_t *list, const struct zk *z)
{
    bool in_force = false;

    if (z->config.bad == NULL)
        return;
    for (const struct zk_config_node *n = z->config.nodes; n != NULL; n = n->hh.next)
        in_force = in_force || n->rules != NULL;
    add(list, str_from(z->source->conf.config_root), in_force, z->config.bad);
}

void zk_report_rules(const struct zk *z, json_t *into)
{
    json_t *list = json_array();

    add_directory(list, z);
    for (const struct zk_config_node *n = z->config.nodes; n != NULL; n = n->hh.next) {
        if (n->wanted || n->kind == RULE_NODE_SCRIPT)
            add(list, str_from(n->name), n->rules != NULL, error_of(n));
    }
    for (const struct zk_path *p = z->paths; p != NULL; p = p->hh.next) {
        for (size_t i = 0; i < ARRAY_LEN(p->bad); i++)
            add_set(list, p, i, true);
    }
    json_object_set_new(into, "rules", list);
}

/* ---------------------------------------------------------------- of a reference */

static bool concerns(const struct reference *ref, const struct zk_config_node *n,
                     struct str own_application)
{
    struct str service = STR_NONE;
    struct arena a;
    bool yes = n->kind != RULE_NODE_TAG && str_eq(n->key, own_application);

    arena_init(&a);
    service = arena_printf(&a, STR_FMT ":" STR_FMT ":" STR_FMT, STR_ARG(ref->key.interface),
                           STR_ARG(ref->key.version), STR_ARG(ref->key.group));
    yes = yes || str_eq(n->key, service);
    arena_free(&a);
    for (size_t i = 0; !yes && ref->directory != NULL && i < ref->directory->n; i++)
        yes = n->kind != RULE_NODE_CONFIGURATORS &&
              str_eq(n->key, ref->directory->providers[i].application);
    return yes;
}

void zk_bad_rules(const void *kind, const struct reference *ref, json_t *list)
{
    const struct zk *z = kind;
    struct str own = str_from(z->source->home->opts.application);
    const struct zk_ref *zr = ref->kind_ref;

    add_directory(list, z);
    for (size_t i = 0; zr != NULL && i < ARRAY_LEN(zr->path->bad); i++)
        add_set(list, zr->path, i, false);
    for (const struct zk_config_node *n = z->config.nodes; n != NULL; n = n->hh.next) {
        const char *error = error_of(n);

        if (error != NULL && concerns(ref, n, own))
            add(list, str_from(n->name), n->rules != NULL, error);
    }
}
