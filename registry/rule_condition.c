#include <string.h>

#include "base/yaml.h"
#include "registry/rule.h"
#include "registry/url.h"

/* ---------------------------------------------------------------- YAML by name */

static bool flag_of(const struct yaml_node *map, struct str key, bool otherwise)
{
    struct str s = yaml_text(map, key);

    return s.n != 0 ? str_is(s, "true") : otherwise;
}

/* ---------------------------------------------------------------- versions before 3.1 */

static bool add_text(struct condition_rule *r, struct str text, struct arena *a, struct err *e)
{
    struct rule_step *s = &r->steps[r->n];
    struct condition c;

    if (!condition_parse(text, a, &c, e))
        return false;
    *s = (struct rule_step){.when = c.when, .then = c.then, .forbid = c.forbid};
    r->n++;
    return true;
}

/* 3.2 reads a step of version 3.1 as a text that no provider matches, 2.7 refuses the whole rule. */
static bool misread(struct condition_rule *r, enum dubbo_line line, struct err *e)
{
    if (line != DUBBO_32) {
        err_set(e, "a condition is no text");
        return false;
    }
    r->steps[r->n] = (struct rule_step){0};
    r->n++;
    return true;
}

/* ---------------------------------------------------------------- version 3.1 */

static bool add_target(struct rule_step *s, const struct yaml_node *n, struct arena *a,
                       struct err *e)
{
    struct rule_target *t = &s->targets[s->n_targets];
    struct str match = yaml_text(n, STR("match"));
    int64_t weight = 100;

    *t = (struct rule_target){.weight = 100};
    if (n->kind != YAML_MAP) {
        err_set(e, "an entry of \"to\" is no map");
        return false;
    }
    if (!str_is(str_trim(match), "false") && !condition_parse_part(match, a, &t->then, e))
        return false;
    if (str_to_i64(yaml_text(n, STR("weight")), INT32_MIN, INT32_MAX, &weight) && weight > 0)
        t->weight = (uint32_t)weight;
    s->n_targets++;
    return true;
}

static bool add_shared(struct condition_rule *r, const struct yaml_node *n, struct arena *a,
                       struct err *e)
{
    struct rule_step *s = &r->steps[r->n];
    const struct yaml_node *from = yaml_find(n, STR("from"));
    const struct yaml_node *to = yaml_find(n, STR("to"));
    size_t n_to = to != NULL && to->kind == YAML_LIST ? to->n : 0;

    *s = (struct rule_step){0};
    if (n->kind != YAML_MAP || n_to > RULE_TARGETS_MAX) {
        err_set(e, "a condition is no map, or has too many targets");
        return false;
    }
    s->targets = arena_alloc(a, (n_to + 1) * sizeof(*s->targets));
    if (from != NULL && from->kind == YAML_MAP &&
        !condition_parse_part(yaml_text(from, STR("match")), a, &s->when, e))
        return false;
    for (size_t i = 0; i < n_to; i++) {
        if (!add_target(s, to->values[i], a, e))
            return false;
    }
    s->forbid = s->n_targets == 0;
    r->n++;
    return true;
}

/* ---------------------------------------------------------------- reading */

static bool add_condition(struct condition_rule *r, const struct yaml_node *n, bool shared,
                          enum dubbo_line line, struct arena *a, struct err *e)
{
    if (shared)
        return add_shared(r, n, a, e);
    if (n->kind != YAML_SCALAR)
        return misread(r, line, e);
    return add_text(r, n->text, a, e);
}

/* "v3.1" -> 301; 0 = none or not understood. */
static unsigned version_number(struct str s)
{
    struct str minor = STR_NONE;
    struct str major = str_cut(str_sub(s, 1, s.n), '.', &minor);
    uint64_t a = 0;
    uint64_t b = 0;

    if (s.n == 0 || s.p[0] != 'v' || !str_to_u64(major, 99, &a) || !str_to_u64(minor, 99, &b))
        return 0;
    return (unsigned)(a * 100 + b);
}

enum rule_result rule_root(struct str text, struct arena *a, const struct yaml_node **root,
                           struct err *e)
{
    if (str_trim(text).n == 0)
        return RULE_NONE;
    *root = yaml_load_plain(text, a, e);
    return *root != NULL ? RULE_OK : RULE_BAD;
}

enum rule_result condition_rule_from_yaml(struct str text, enum dubbo_line line, struct arena *a,
                                          struct condition_rule *out, struct err *e)
{
    enum rule_result r = RULE_OK;
    const struct yaml_node *root = NULL;
    const struct yaml_node *list = NULL;
    unsigned version = 0;

    *out = (struct condition_rule){0};
    r = rule_root(text, a, &root, e);
    if (r != RULE_OK)
        return r;
    version = version_number(yaml_text(root, STR("configVersion")));
    if (line >= DUBBO_33 && version > 301) {
        err_set(e, "version " STR_FMT " is newer than 3.1",
                STR_ARG(yaml_text(root, STR("configVersion"))));
        return RULE_BAD;
    }
    list = yaml_find(root, STR("conditions"));
    if (!flag_of(root, STR("enabled"), true))
        return RULE_NONE;
    if (list == NULL || list->kind != YAML_LIST || list->n == 0) {
        err_set(e, "no list of conditions");
        return RULE_BAD;
    }
    if (list->n > RULE_STEPS_MAX) {
        err_set(e, "%zu conditions, more than %d", list->n, RULE_STEPS_MAX);
        return RULE_BAD;
    }
    out->force = flag_of(root, STR("force"), false);
    out->steps = arena_alloc(a, list->n * sizeof(*out->steps));
    for (size_t i = 0; i < list->n; i++) {
        if (!add_condition(out, list->values[i], line >= DUBBO_33 && version == 301, line, a, e))
            return RULE_BAD;
    }
    return RULE_OK;
}

enum rule_result condition_rule_from_text(struct str text, bool force, struct arena *a,
                                          struct condition_rule *out, struct err *e)
{
    *out = (struct condition_rule){.force = force,
                                   .steps = arena_alloc(a, sizeof(struct rule_step))};
    return add_text(out, text, a, e) ? RULE_OK : RULE_BAD;
}

/* ---------------------------------------------------------------- router URLs of 2.6 */

static bool is_for_us(const struct url *u, struct str own_ip)
{
    struct str enabled = url_param(u, STR("enabled"));

    return !str_is(enabled, "false") && (str_is(u->host, "0.0.0.0") || str_eq(u->host, own_ip));
}

static enum rule_result from_parsed(const struct url *u, struct arena *a,
                                    struct condition_rule *out, struct err *e)
{
    struct str kind = url_param(u, STR("router"));
    struct str force = url_param(u, STR("force"));
    int64_t priority = 0;
    struct buf rule;
    enum rule_result result = RULE_BAD;

    if (kind.n == 0 || str_is(u->scheme, "condition"))
        kind = u->scheme;
    if (!str_is(kind, "condition")) {
        err_set(e, "a router of kind " STR_FMT " is not run", STR_ARG(kind));
        return RULE_BAD;
    }
    buf_init(&rule, URL_MAX);
    if (!url_decode(url_param(u, STR("rule")), &rule))
        err_set(e, "the rule is not encoded as it should be");
    else
        result = condition_rule_from_text(arena_str(a, buf_str(&rule)), str_is(force, "true"), a,
                                          out, e);
    buf_free(&rule);
    if (str_to_i64(url_param(u, STR("priority")), INT32_MIN, INT32_MAX, &priority))
        out->priority = (int)priority;
    return result;
}

enum rule_result condition_rule_from_url(struct str url, struct str own_ip, struct arena *a,
                                         struct condition_rule *out, struct err *e)
{
    struct url u;

    *out = (struct condition_rule){0};
    if (!url_parse(url, &u, e))
        return RULE_BAD;
    if (str_is(u.scheme, "empty") || !is_for_us(&u, own_ip))
        return RULE_NONE;
    return from_parsed(&u, a, out, e);
}
