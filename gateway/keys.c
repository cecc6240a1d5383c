#include "gateway/keys.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fatal.h"

/* ---------------------------------------------------------------- errors */

#define AT(node) (node)->line, (node)->column

static const struct {
    const char *foreign;
    const char *ours;
} translations[] = {
    {"retries", "retry.attempts"},
    {"paramTypes", "methods[].types"},
    {"parameterTypes", "methods[].types"},
    {"mapTo", "args[].from"},
    {"httpVerb", "method"},
    {"serviceMethod", "call"},
    {"lb_policy", "loadbalance"},
    {"consumers", "clients"},
    {"port", "listen[].address"},
    {"upstream", "services"},
    {"backend", "services"},
};

static const struct key *row_in(const struct key *table, struct str name)
{
    for (const struct key *k = table; k->name != NULL; k++) {
        const struct key *inner = k->type == KEY_EMBED ? row_in(k->table, name) : NULL;

        if (inner != NULL)
            return inner;
        if (k->type != KEY_EMBED && str_is(name, k->name))
            return k;
    }
    return NULL;
}

static void nearest_in(const struct key *table, struct str name, const char **best,
                       size_t *distance)
{
    for (const struct key *k = table; k->name != NULL; k++) {
        size_t d = 0;

        if (k->type == KEY_EMBED) {
            nearest_in(k->table, name, best, distance);
            continue;
        }
        d = str_distance(name, str_from(k->name));
        if (d < *distance) {
            *best = k->name;
            *distance = d;
        } else if (d == *distance) {
            *best = NULL; /* a tie helps nobody */
        }
    }
}

static void list_names(const struct key *table, struct buf *out)
{
    for (const struct key *k = table; k->name != NULL; k++) {
        if (k->type == KEY_EMBED)
            list_names(k->table, out);
        else
            buf_printf(out, "%s%s", out->len != 0 ? ", " : "", k->name);
    }
}

static void unknown_key(struct key_context *c, const struct key *table, const struct yaml_node *key,
                        const char *where)
{
    size_t distance = (key->text.n / 3 > 1 ? key->text.n / 3 : 1) + 1;
    const char *best = NULL;
    char in[160] = "";

    if (where[0] != '\0')
        snprintf(in, sizeof(in), " in %s", where);
    nearest_in(table, key->text, &best, &distance);
    if (best != NULL) {
        config_error(c->errs, AT(key), "unknown key \"" STR_FMT "\"%s; did you mean \"%s\"?",
                     STR_ARG(key->text), in, best);
        return;
    }
    for (size_t i = 0; i < ARRAY_LEN(translations); i++) {
        if (str_is(key->text, translations[i].foreign)) {
            config_error(c->errs, AT(key),
                         "unknown key \"" STR_FMT "\"%s; here it is called \"%s\"",
                         STR_ARG(key->text), in, translations[i].ours);
            return;
        }
    }
    struct buf names;

    buf_init(&names, 4096);
    list_names(table, &names);
    config_error(c->errs, AT(key), "unknown key \"" STR_FMT "\"%s; allowed: " STR_FMT,
                 STR_ARG(key->text), in, STR_ARG(str_sub(buf_str(&names), 0, 240)));
    buf_free(&names);
}

/* ---------------------------------------------------------------- scalars */

static void *at(void *base, size_t offset)
{
    return (char *)base + offset;
}

static void bad_size(struct key_context *c, const struct key *k, const struct yaml_node *v)
{
    struct str unit = v->text;

    while (unit.n != 0 && unit.p[0] >= '0' && unit.p[0] <= '9')
        unit = str_sub(unit, 1, unit.n);
    if (unit.n == 2 && (unit.p[1] == 'B' || unit.p[1] == 'b'))
        config_error(c->errs, AT(v),
                     "\"%s\": unit \"" STR_FMT "\" can mean 1000 or 1024; write " STR_FMT
                     "%c or " STR_FMT "%ciB (1024)",
                     k->name, STR_ARG(unit), STR_ARG(str_sub(v->text, 0, v->text.n - 2)),
                     unit.p[0] | 0x20, STR_ARG(str_sub(v->text, 0, v->text.n - 2)),
                     unit.p[0] & 0x5f);
    else
        config_error(c->errs, AT(v),
                     "\"%s\": \"" STR_FMT
                     "\" is not a size; write a whole number and B, k, m or g, e.g. 512k",
                     k->name, STR_ARG(v->text));
}

static void bad_duration(struct key_context *c, const struct key *k, const struct yaml_node *v)
{
    uint64_t n = 0;

    if (!str_to_u64(v->text, UINT64_MAX, &n)) {
        config_error(c->errs, AT(v),
                     "\"%s\": \"" STR_FMT
                     "\" is not a duration; write a whole number and ms, s, m, h or d, e.g. 500ms",
                     k->name, STR_ARG(v->text));
        return;
    }
    if (n % 1000 == 0)
        config_error(c->errs, AT(v),
                     "\"%s\": " STR_FMT " has no unit; write " STR_FMT "ms or %llus", k->name,
                     STR_ARG(v->text), STR_ARG(v->text), (unsigned long long)(n / 1000));
    else
        config_error(c->errs, AT(v), "\"%s\": " STR_FMT " has no unit; write " STR_FMT "ms",
                     k->name, STR_ARG(v->text), STR_ARG(v->text));
}

static void print_bound(const struct key *k, uint64_t v, char *out, size_t cap)
{
    if (k->type == KEY_SIZE)
        snprintf(out, cap, v % (1 << 20) == 0 && v != 0 ? "%llum" : "%lluk",
                 (unsigned long long)(v % (1 << 20) == 0 && v != 0 ? v >> 20 : v >> 10));
    else if (v % 86400000 == 0 && v != 0)
        snprintf(out, cap, "%llud", (unsigned long long)(v / 86400000));
    else if (v % 3600000 == 0 && v != 0)
        snprintf(out, cap, "%lluh", (unsigned long long)(v / 3600000));
    else if (v % 60000 == 0 && v != 0)
        snprintf(out, cap, "%llum", (unsigned long long)(v / 60000));
    else if (v % 1000 == 0 && v != 0)
        snprintf(out, cap, "%llus", (unsigned long long)(v / 1000));
    else
        snprintf(out, cap, "%llums", (unsigned long long)v);
}

static bool in_bounds(struct key_context *c, const struct key *k, const struct yaml_node *v,
                      uint64_t n)
{
    char bound[32];

    if (n >= k->lo && n <= k->hi)
        return true;
    print_bound(k, n > k->hi ? k->hi : k->lo, bound, sizeof(bound));
    config_error(c->errs, AT(v), "\"%s\": " STR_FMT " is %s %s", k->name, STR_ARG(v->text),
                 n > k->hi ? "above the maximum" : "below the minimum", bound);
    return false;
}

static void set_u32(struct key_context *c, const struct key *k, void *to, const struct yaml_node *v)
{
    uint64_t n = 0;

    if (!str_to_u64(v->text, UINT64_MAX, &n))
        config_error(c->errs, AT(v), "\"%s\": \"" STR_FMT "\" is not a whole number (%llu to %llu)",
                     k->name, STR_ARG(v->text), (unsigned long long)k->lo,
                     (unsigned long long)k->hi);
    else if (n < k->lo || n > k->hi)
        config_error(c->errs, AT(v), "\"%s\": " STR_FMT " is out of range (%llu to %llu)", k->name,
                     STR_ARG(v->text), (unsigned long long)k->lo, (unsigned long long)k->hi);
    else
        *(uint32_t *)to = (uint32_t)n;
}

static void set_bool(struct key_context *c, const struct key *k, void *to,
                     const struct yaml_node *v)
{
    static const char *const no[] = {"no", "off", "0", "n"};
    bool hint = true;

    if (str_is(v->text, "true") || str_is(v->text, "false")) {
        *(bool *)to = str_is(v->text, "true");
        return;
    }
    for (size_t i = 0; i < ARRAY_LEN(no); i++)
        hint = hint && !str_eq_nocase(v->text, str_from(no[i]));
    config_error(c->errs, AT(v), "\"%s\": \"" STR_FMT "\" is not a boolean; write %s", k->name,
                 STR_ARG(v->text), hint ? "true" : "false");
}

static void bad_choice(struct key_context *c, const struct key *k, const struct yaml_node *v)
{
    struct buf all;
    const char *best = NULL;
    size_t distance = (v->text.n / 3 > 1 ? v->text.n / 3 : 1) + 1;

    buf_init(&all, 1024);
    for (size_t i = 0; k->choices[i] != NULL; i++) {
        size_t d = str_distance(v->text, str_from(k->choices[i]));

        buf_printf(&all, "%s%s", i != 0 ? ", " : "", k->choices[i]);
        if (d < distance) {
            distance = d;
            best = k->choices[i];
        }
    }
    if (best != NULL)
        config_error(c->errs, AT(v),
                     "\"%s\": \"" STR_FMT "\" is not one of " STR_FMT "; did you mean \"%s\"?",
                     k->name, STR_ARG(v->text), STR_ARG(buf_str(&all)), best);
    else
        config_error(c->errs, AT(v), "\"%s\": \"" STR_FMT "\" is not one of " STR_FMT, k->name,
                     STR_ARG(v->text), STR_ARG(buf_str(&all)));
    buf_free(&all);
}

static bool find_choice(const struct key *k, struct str text, uint32_t *index)
{
    for (uint32_t i = 0; k->choices[i] != NULL; i++) {
        if (str_is(text, k->choices[i])) {
            *index = i;
            return true;
        }
    }
    return false;
}

static void set_double(struct key_context *c, const struct key *k, void *to,
                       const struct yaml_node *v)
{
    char text[32];
    char *end = NULL;
    double d = 0;

    snprintf(text, sizeof(text), STR_FMT, STR_ARG(v->text));
    d = strtod(text, &end);
    if (end == text || *end != '\0' || v->text.n >= sizeof(text) || !(d >= (double)k->lo) ||
        !(d <= (double)k->hi))
        config_error(c->errs, AT(v), "\"%s\": \"" STR_FMT "\" is not a number from %llu to %llu",
                     k->name, STR_ARG(v->text), (unsigned long long)k->lo,
                     (unsigned long long)k->hi);
    else
        *(double *)to = d;
}

static bool check_text(struct key_context *c, const struct key *k, const struct yaml_node *v)
{
    uint32_t index = 0;

    if (k->choices != NULL && !str_is(v->text, k->def) && !find_choice(k, v->text, &index)) {
        bad_choice(c, k, v);
        return false;
    }
    if (k->check == NULL || k->check(v->text))
        return true;
    config_error(c->errs, AT(v), "\"%s\": \"" STR_FMT "\" is not %s", k->name, STR_ARG(v->text),
                 k->form);
    return false;
}

static void set_scalar(struct key_context *c, const struct key *k, void *to,
                       const struct yaml_node *v)
{
    uint64_t n = 0;

    switch (k->type) {
    case KEY_U32:
        set_u32(c, k, to, v);
        return;
    case KEY_MS:
    case KEY_MS64:
        if (!keys_parse_ms(v->text, &n))
            bad_duration(c, k, v);
        else if (in_bounds(c, k, v, n) && k->type == KEY_MS)
            *(uint32_t *)to = (uint32_t)n;
        else if (n <= k->hi && n >= k->lo)
            *(uint64_t *)to = n;
        return;
    case KEY_SIZE:
        if (!keys_parse_size(v->text, &n))
            bad_size(c, k, v);
        else if (in_bounds(c, k, v, n))
            *(size_t *)to = n;
        return;
    case KEY_BOOL:
        set_bool(c, k, to, v);
        return;
    case KEY_DOUBLE:
        set_double(c, k, to, v);
        return;
    case KEY_CHOICE:
        if (!find_choice(k, v->text, to))
            bad_choice(c, k, v);
        return;
    case KEY_TEXT:
        if (check_text(c, k, v))
            *(struct str *)to = v->text;
        return;
    case KEY_FLAGS:
    case KEY_TEXTS:
    case KEY_TEXT_MAP:
    case KEY_SOURCE_MAP:
    case KEY_BLOCK:
    case KEY_BLOCKS:
    case KEY_EMBED:
        return;
    }
}

/* ---------------------------------------------------------------- lists and maps */

static void set_texts(struct key_context *c, const struct key *k, struct text_list *to,
                      const struct yaml_node *v)
{
    to->v = arena_alloc(c->a, (v->n + 1) * sizeof(struct str));
    to->n = 0;
    for (size_t i = 0; i < v->n; i++) {
        if (v->values[i]->kind != YAML_SCALAR)
            config_error(c->errs, AT(v->values[i]), "\"%s\" holds texts only", k->name);
        else if (check_text(c, k, v->values[i]))
            to->v[to->n++] = v->values[i]->text;
    }
}

static void set_flags(struct key_context *c, const struct key *k, uint32_t *to,
                      const struct yaml_node *v)
{
    *to = 0;
    for (size_t i = 0; i < v->n; i++) {
        uint32_t index = 0;

        if (v->values[i]->kind == YAML_SCALAR && find_choice(k, v->values[i]->text, &index))
            *to |= 1U << (k->flag_base + index);
        else
            bad_choice(c, k, v->values[i]);
    }
}

/* Maps merge: what was inherited stays unless it is named again. */
static void set_text_map(struct key_context *c, const struct key *k, struct text_map *to,
                         const struct yaml_node *v)
{
    struct text_pair *all = arena_alloc(c->a, (to->n + v->n + 1) * sizeof(struct text_pair));
    size_t n = to->n;

    if (n != 0)
        memcpy(all, to->v, n * sizeof(*all));
    for (size_t i = 0; i < v->n; i++) {
        size_t j = 0;

        if (v->values[i]->kind != YAML_SCALAR) {
            config_error(c->errs, AT(v->values[i]), "\"%s\" holds texts only", k->name);
            continue;
        }
        while (j < n && !str_eq(all[j].name, v->keys[i]->text))
            j++;
        all[j] = (struct text_pair){v->keys[i]->text, v->values[i]->text};
        n += j == n ? 1U : 0U;
    }
    *to = (struct text_map){all, n};
}

static void set_source_map(struct key_context *c, const struct key *k, struct source_map *to,
                           const struct yaml_node *v)
{
    struct named_source *all = arena_alloc(c->a, (to->n + v->n + 1) * sizeof(struct named_source));
    size_t n = to->n;

    if (n != 0)
        memcpy(all, to->v, n * sizeof(*all));
    for (size_t i = 0; i < v->n; i++) {
        struct named_source e = {.name = v->keys[i]->text};
        size_t j = 0;
        bool constant = str_is(str_from(k->name), "attachments"); /* there a plain text is itself */

        if (v->values[i]->kind != YAML_SCALAR ||
            (!keys_parse_source(v->values[i]->text, &e.source) && !constant)) {
            config_error(
                c->errs, AT(v->values[i]),
                "\"" STR_FMT "\": \"" STR_FMT
                "\" is not a source such as path.id, query.page, header.X-Tenant or body.name",
                STR_ARG(e.name), STR_ARG(v->values[i]->text));
            continue;
        }
        if (e.source.text.n == 0)
            e.source = (struct source){
                .kind = SOURCE_CONST, .text = v->values[i]->text, .name = v->values[i]->text};
        while (j < n && !str_eq(all[j].name, e.name))
            j++;
        all[j] = e;
        n += j == n ? 1U : 0U;
    }
    *to = (struct source_map){all, n};
}

static void set_blocks(struct key_context *c, const struct key *k, void *base,
                       const struct yaml_node *v)
{
    char *elements = arena_alloc(c->a, (v->n + 1) * k->size);

    memcpy(at(base, k->offset), &elements, sizeof(elements));
    *(size_t *)at(base, k->count_offset) = v->n;
    for (size_t i = 0; i < v->n; i++) {
        void *e = elements + i * k->size;
        char where[80];

        snprintf(where, sizeof(where), "%s[%zu]", k->name, i);
        keys_defaults(c, k->table, e);
        if (v->values[i]->kind != YAML_MAP) {
            config_error(c->errs, AT(v->values[i]), "%s must be a block of keys", where);
            continue;
        }
        if (k->init != NULL)
            k->init(c, e, v->values[i], base);
        keys_apply(c, k->table, e, v->values[i], where);
    }
}

/* ---------------------------------------------------------------- one row, one table */

static enum yaml_kind wants(const struct key *k)
{
    switch (k->type) {
    case KEY_TEXTS:
    case KEY_FLAGS:
    case KEY_BLOCKS:
        return YAML_LIST;
    case KEY_TEXT_MAP:
    case KEY_SOURCE_MAP:
    case KEY_BLOCK:
        return YAML_MAP;
    case KEY_U32:
    case KEY_MS:
    case KEY_MS64:
    case KEY_SIZE:
    case KEY_BOOL:
    case KEY_DOUBLE:
    case KEY_CHOICE:
    case KEY_TEXT:
    case KEY_EMBED:
        break;
    }
    return YAML_SCALAR;
}

static bool check_kind(struct key_context *c, const struct key *k, const struct yaml_node *v)
{
    if (v->kind == wants(k))
        return true;
    if (v->kind == YAML_SCALAR && v->text.n == 0 && !v->quoted)
        config_error(c->errs, AT(v), "\"%s\" has no value; remove the key or give it one", k->name);
    else if (wants(k) == YAML_LIST)
        config_error(c->errs, AT(v), "\"%s\" must be a list; write \"- \" in front of each item",
                     k->name);
    else if (wants(k) == YAML_MAP && v->kind == YAML_SCALAR)
        config_error(c->errs, AT(v), "%s must be a block of keys, not the value \"" STR_FMT "\"",
                     k->name, STR_ARG(v->text));
    else if (wants(k) == YAML_MAP)
        config_error(c->errs, AT(v), "%s must be a block of keys, not a list", k->name);
    else
        config_error(c->errs, AT(v), "\"%s\" must be one value", k->name);
    return false;
}

static void apply_row(struct key_context *c, const struct key *k, void *base,
                      const struct yaml_node *v, const char *where)
{
    char inner[160];

    if (!check_kind(c, k, v))
        return;
    if (v->kind == YAML_SCALAR && v->text.n == 0 && !v->quoted) {
        config_error(c->errs, AT(v), "\"%s\" has no value; remove the key or give it one", k->name);
        return;
    }
    if (k->set_offset != SIZE_MAX)
        *(bool *)at(base, k->set_offset) = true;
    switch (k->type) {
    case KEY_TEXTS:
        set_texts(c, k, at(base, k->offset), v);
        return;
    case KEY_FLAGS:
        set_flags(c, k, at(base, k->offset), v);
        return;
    case KEY_TEXT_MAP:
        set_text_map(c, k, at(base, k->offset), v);
        return;
    case KEY_SOURCE_MAP:
        set_source_map(c, k, at(base, k->offset), v);
        return;
    case KEY_BLOCK:
        snprintf(inner, sizeof(inner), "%s%s%s", where, where[0] != '\0' ? "." : "", k->name);
        keys_apply(c, k->table, base, v, inner);
        return;
    case KEY_BLOCKS:
        set_blocks(c, k, base, v);
        return;
    case KEY_U32:
    case KEY_MS:
    case KEY_MS64:
    case KEY_SIZE:
    case KEY_BOOL:
    case KEY_DOUBLE:
    case KEY_CHOICE:
    case KEY_TEXT:
        set_scalar(c, k, at(base, k->offset), v);
        return;
    case KEY_EMBED:
        return;
    }
}

/* In the order of the table, so that what others inherit from is read first. */
static void apply_rows(struct key_context *c, const struct key *table, void *base,
                       const struct yaml_node *node, const char *where)
{
    for (const struct key *k = table; k->name != NULL; k++) {
        const struct yaml_node *v = NULL;

        if (k->type == KEY_EMBED) {
            apply_rows(c, k->table, at(base, k->offset), node, where);
            continue;
        }
        v = yaml_find(node, str_from(k->name));
        if (v != NULL)
            apply_row(c, k, base, v, where);
        else if (k->required)
            config_error(c->errs, AT(node), "missing key \"%s\"%s%s", k->name,
                         where[0] != '\0' ? " in " : "", where);
    }
}

void keys_apply(struct key_context *c, const struct key *table, void *base,
                const struct yaml_node *node, const char *where)
{
    apply_rows(c, table, base, node, where);
    for (size_t i = 0; i < node->n; i++) {
        if (row_in(table, node->keys[i]->text) == NULL)
            unknown_key(c, table, node->keys[i], where);
    }
}

void keys_defaults(struct key_context *c, const struct key *table, void *base)
{
    for (const struct key *k = table; k->name != NULL; k++) {
        if (k->type == KEY_EMBED || k->type == KEY_BLOCK) {
            keys_defaults(c, k->table, at(base, k->type == KEY_EMBED ? k->offset : 0));
        } else if (k->def != NULL && k->type == KEY_FLAGS) {
            for (unsigned i = 0; k->choices[i] != NULL; i++) {
                if (strcmp(k->def, "all") == 0 || strcmp(k->def, k->choices[i]) == 0)
                    *(uint32_t *)at(base, k->offset) |= 1U << (k->flag_base + i);
            }
        } else if (k->def != NULL && wants(k) == YAML_SCALAR) {
            const struct yaml_node v = {
                .kind = YAML_SCALAR, .text = str_from(k->def), .quoted = true};
            size_t before = c->errs->n;

            set_scalar(c, k, at(base, k->offset), &v);
            ASSERT(c->errs->n == before); /* a default out of its own range */
        }
    }
}
