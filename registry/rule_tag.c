#include <regex.h>
#include <string.h>

#include "base/yaml.h"
#include "registry/network.h"
#include "registry/rule.h"

/* ---------------------------------------------------------------- reading */

static const char *const kinds[TAG_MATCH_KINDS] = {
    [TAG_EXACT] = "exact",       [TAG_PREFIX] = "prefix",   [TAG_REGEX] = "regex",
    [TAG_WILDCARD] = "wildcard", [TAG_NOEMPTY] = "noempty", [TAG_EMPTY] = "empty",
};

static bool add_match(struct rule_tag *t, const struct yaml_node *n, struct err *e)
{
    struct tag_match *m = &t->matches[t->n_matches];
    const struct yaml_node *value = yaml_find(n, STR("value"));

    m->key = yaml_text(n, STR("key"));
    m->kind = TAG_MATCH_KINDS;
    for (size_t i = 0; value != NULL && i < TAG_MATCH_KINDS; i++) {
        if (yaml_find(value, str_from(kinds[i])) != NULL) {
            m->kind = (enum tag_match_kind)i;
            m->value = yaml_text(value, str_from(kinds[i]));
        }
    }
    if (m->key.n == 0 || m->kind == TAG_MATCH_KINDS) {
        err_set(e, "tag " STR_FMT ": a match without key or value", STR_ARG(t->name));
        return false;
    }
    t->n_matches++;
    return true;
}

static bool read_tag(const struct yaml_node *n, enum dubbo_line line, struct arena *a,
                     struct rule_tag *t, struct err *e)
{
    const struct yaml_node *addresses = yaml_find(n, STR("addresses"));
    const struct yaml_node *match = yaml_find(n, STR("match"));

    *t = (struct rule_tag){.name = yaml_text(n, STR("name"))};
    if (addresses != NULL && addresses->kind == YAML_LIST && addresses->n <= RULE_ADDRESSES_MAX) {
        t->addresses = arena_alloc(a, (addresses->n + 1) * sizeof(struct str));
        for (size_t i = 0; i < addresses->n; i++)
            t->addresses[t->n_addresses++] = addresses->values[i]->text;
    }
    if (line < DUBBO_32 || match == NULL || match->kind != YAML_LIST)
        return true;
    t->matches = arena_alloc(a, (match->n + 1) * sizeof(struct tag_match));
    for (size_t i = 0; i < match->n; i++) {
        if (!add_match(t, match->values[i], e))
            return false;
    }
    return true;
}

enum rule_result tag_rule_from_yaml(struct str text, enum dubbo_line line, struct arena *a,
                                    struct tag_rule *out, struct err *e)
{
    enum rule_result r = RULE_OK;
    const struct yaml_node *root = NULL;
    const struct yaml_node *tags = NULL;

    *out = (struct tag_rule){0};
    r = rule_root(text, a, &root, e);
    if (r != RULE_OK)
        return r;
    if (str_is(yaml_text(root, STR("enabled")), "false"))
        return RULE_NONE;
    tags = yaml_find(root, STR("tags"));
    if (tags == NULL || tags->kind != YAML_LIST || tags->n == 0 || tags->n > RULE_TAGS_MAX) {
        err_set(e, "no tags, or more than %d", RULE_TAGS_MAX);
        return RULE_BAD;
    }
    out->force = str_is(yaml_text(root, STR("force")), "true");
    out->tags = arena_alloc(a, tags->n * sizeof(*out->tags));
    for (size_t i = 0; i < tags->n; i++) {
        if (!read_tag(tags->values[i], line, a, &out->tags[out->n++], e))
            return RULE_BAD;
    }
    return RULE_OK;
}

/* ---------------------------------------------------------------- matching */

/* One octet: a number, '*', or "a-b". */
static bool octet_matches(struct str pattern, struct str octet)
{
    struct str hi_text = STR_NONE;
    struct str lo_text = str_cut(pattern, '-', &hi_text);
    uint64_t lo = 0;
    uint64_t hi = 0;
    uint64_t v = 0;

    if (str_is(pattern, "*") || str_eq(pattern, octet))
        return true;
    return str_to_u64(lo_text, 255, &lo) && str_to_u64(hi_text, 255, &hi) &&
           str_to_u64(octet, 255, &v) && v >= lo && v <= hi;
}

static bool octets_match(struct str pattern, struct str host)
{
    for (int i = 0; i < 4; i++) {
        if (!octet_matches(str_cut(pattern, '.', &pattern), str_cut(host, '.', &host)))
            return false;
    }
    return pattern.n == 0 && host.n == 0;
}

static bool host_matches(struct str pattern, struct str host)
{
    struct network net;
    union address a;
    struct err e;

    if (str_is(pattern, "0.0.0.0") || str_is(pattern, "*") || str_eq(pattern, host))
        return true;
    if (str_find(pattern, '/') == pattern.n)
        return octets_match(pattern, host);
    return address_from_text(host, 0, &a) && network_parse(pattern, &net, &e) &&
           network_contains(&net, &a);
}

bool rule_address_matches(struct str pattern, struct str host, uint16_t port)
{
    size_t colon = pattern.n;
    uint64_t wanted = 0;

    while (colon > 0 && pattern.p[colon - 1] != ':')
        colon--;
    if (colon == 0)
        return host_matches(pattern, host);
    struct str port_text = str_sub(pattern, colon, pattern.n);

    if (!str_is(port_text, "*") && (!str_to_u64(port_text, 65535, &wanted) || wanted != port))
        return false;
    return host_matches(str_sub(pattern, 0, colon - 1), host);
}

/* The whole value, as Java's matches(). */
static bool regex_matches(struct str pattern, struct str value)
{
    char p[512];
    char v[1024];
    regex_t r;
    regmatch_t m;
    bool ok = false;

    if (pattern.n + 3 > sizeof(p) || !str_copy(value, v, sizeof(v)))
        return false;
    memcpy(p, pattern.p, pattern.n);
    p[pattern.n] = '\0';
    if (regcomp(&r, p, REG_EXTENDED) != 0)
        return false;
    ok = regexec(&r, v, 1, &m, 0) == 0 && m.rm_so == 0 && (size_t)m.rm_eo == value.n;
    regfree(&r);
    return ok;
}

bool tag_match_value(const struct tag_match *m, struct str value)
{
    switch (m->kind) {
    case TAG_EXACT:
        return value.n != 0 && str_eq(m->value, value);
    case TAG_PREFIX:
        return value.n != 0 && str_starts(value, m->value);
    case TAG_REGEX:
        return value.n != 0 && regex_matches(m->value, value);
    case TAG_WILDCARD:
        return value.n != 0 && (str_is(m->value, "*") || str_eq(m->value, value));
    case TAG_NOEMPTY:
        return value.n != 0;
    case TAG_EMPTY:
        return value.n == 0;
    case TAG_MATCH_KINDS:
        break;
    }
    return false;
}
