/*
 * The key table as text: the configuration in effect, the JSON Schema, the manual page.
 */
#include <stdio.h>

#include "codec/json_write.h"
#include "registry/url.h"
#include "gateway/keys.h"

/* ---------------------------------------------------------------- -T */

static const void *at(const void *base, size_t offset)
{
    return (const char *)base + offset;
}

static void indent(struct buf *out, unsigned depth)
{
    for (unsigned i = 0; i < depth; i++)
        buf_add_str(out, STR("  "));
}

/* Without settings only the value is wanted. */
static void origin(struct buf *out, const struct settings *s, const struct yaml_node *v)
{
    if (s == NULL)
        buf_add_u8(out, '\n');
    else if (v != NULL)
        buf_printf(out, "  # %s:%u\n", s->file, v->line);
    else
        buf_add_str(out, STR("  # default\n"));
}

static void put_ms(struct buf *out, uint64_t ms)
{
    if (ms % 1000 == 0)
        buf_printf(out, "%llus", (unsigned long long)(ms / 1000));
    else
        buf_printf(out, "%llums", (unsigned long long)ms);
}

static void put_size(struct buf *out, uint64_t n)
{
    if (n % (1 << 20) == 0 && n != 0)
        buf_printf(out, "%llum", (unsigned long long)(n >> 20));
    else if (n % 1024 == 0 && n != 0)
        buf_printf(out, "%lluk", (unsigned long long)(n >> 10));
    else
        buf_printf(out, "%llu", (unsigned long long)n);
}

static void put_texts(struct buf *out, const struct text_list *l)
{
    buf_add_u8(out, '[');
    for (size_t i = 0; i < l->n; i++) {
        if (i != 0)
            buf_add_str(out, STR(", "));
        json_add_string(out, l->v[i]);
    }
    buf_add_u8(out, ']');
}

static void put_flags(struct buf *out, const struct key *k, uint32_t bits)
{
    const char *comma = "";

    buf_add_u8(out, '[');
    for (unsigned i = 0; k->choices[i] != NULL; i++) {
        if (bits & 1U << (k->flag_base + i)) {
            buf_printf(out, "%s%s", comma, k->choices[i]);
            comma = ", ";
        }
    }
    buf_add_u8(out, ']');
}

static void put_map(struct buf *out, const struct text_map *m)
{
    buf_add_u8(out, '{');
    for (size_t i = 0; i < m->n; i++) {
        if (i != 0)
            buf_add_str(out, STR(", "));
        json_add_string(out, m->v[i].name);
        buf_add_str(out, STR(": "));
        json_add_string(out, m->v[i].value);
    }
    buf_add_u8(out, '}');
}

static void put_sources(struct buf *out, const struct source_map *m)
{
    buf_add_u8(out, '{');
    for (size_t i = 0; i < m->n; i++) {
        if (i != 0)
            buf_add_str(out, STR(", "));
        json_add_string(out, m->v[i].name);
        buf_add_str(out, STR(": "));
        json_add_string(out, m->v[i].source.text);
    }
    buf_add_u8(out, '}');
}

static void put_masked(struct buf *out, struct str address)
{
    struct buf b;

    buf_init(&b, URL_MAX + 8);
    url_print_masked(address, &b);
    json_add_string(out, buf_str(&b));
    buf_free(&b);
}

static void put_value(struct buf *out, const struct key *k, const void *base)
{
    const void *p = at(base, k->offset);

    switch (k->type) {
    case KEY_U32:
        buf_printf(out, "%u", *(const uint32_t *)p);
        return;
    case KEY_MS:
        put_ms(out, *(const uint32_t *)p);
        return;
    case KEY_MS64:
        put_ms(out, *(const uint64_t *)p);
        return;
    case KEY_SIZE:
        put_size(out, *(const size_t *)p);
        return;
    case KEY_BOOL:
        buf_add_str(out, *(const bool *)p ? STR("true") : STR("false"));
        return;
    case KEY_DOUBLE:
        buf_printf(out, "%g", *(const double *)p);
        return;
    case KEY_CHOICE:
        buf_printf(out, "%s", k->choices[*(const uint32_t *)p]);
        return;
    case KEY_FLAGS:
        put_flags(out, k, *(const uint32_t *)p);
        return;
    case KEY_TEXT:
        json_add_string(out, *(const struct str *)p);
        return;
    case KEY_TEXTS:
        put_texts(out, p);
        return;
    case KEY_TEXT_MAP:
        put_map(out, p);
        return;
    case KEY_SOURCE_MAP:
        put_sources(out, p);
        return;
    case KEY_BLOCK:
    case KEY_BLOCKS:
    case KEY_EMBED:
        return;
    }
}

static void dump(const struct settings *s, const struct key *table, const void *base,
                 const struct yaml_node *node, struct buf *out, unsigned depth);

static void dump_blocks(const struct settings *s, const struct key *k, const void *base,
                        const struct yaml_node *v, struct buf *out, unsigned depth)
{
    const char *elements = *(const char *const *)at(base, k->offset);
    size_t n = *(const size_t *)at(base, k->count_offset);

    if (n == 0) {
        buf_add_str(out, STR(" []"));
        origin(out, s, v);
        return;
    }
    buf_add_u8(out, '\n');
    for (size_t i = 0; i < n; i++) {
        const struct yaml_node *b = v != NULL && v->kind == YAML_LIST && i < v->n ? v->values[i]
                                                                                  : NULL;
        size_t from = out->len;

        dump(s, k->table, elements + i * k->size, b, out, depth + 2);
        if (!out->failed && out->len > from + (size_t)(depth + 2) * 2)
            out->data[from + (size_t)(depth + 1) * 2] = '-'; /* the first key carries the dash */
    }
}

static void dump(const struct settings *s, const struct key *table, const void *base,
                 const struct yaml_node *node, struct buf *out, unsigned depth)
{
    for (const struct key *k = table; k->name != NULL; k++) {
        const struct yaml_node *v = node != NULL && k->type != KEY_EMBED
                                        ? yaml_find(node, str_from(k->name))
                                        : NULL;

        if (k->type == KEY_EMBED) {
            dump(s, k->table, at(base, k->offset), node, out, depth);
            continue;
        }
        indent(out, depth);
        buf_printf(out, "%s:", k->name);
        if (k->type == KEY_BLOCK) {
            buf_add_u8(out, '\n');
            dump(s, k->table, base, v, out, depth + 1);
        } else if (k->type == KEY_BLOCKS) {
            dump_blocks(s, k, base, v, out, depth);
        } else {
            buf_add_u8(out, ' ');
            if (k->masked && s != NULL)
                put_masked(out, *(const struct str *)at(base, k->offset));
            else
                put_value(out, k, base);
            origin(out, s, v);
        }
    }
}

void keys_dump(const struct settings *s, struct buf *out)
{
    dump(s, keys_top, s, s->root, out, 0);
}

void keys_print_row(const struct key *k, const void *base, struct buf *out)
{
    if (k->type == KEY_BLOCKS)
        dump_blocks(NULL, k, base, NULL, out, 0);
    else
        put_value(out, k, base);
}

/* ---------------------------------------------------------------- JSON Schema */

static void schema_table(const struct key *table, struct buf *out);

static void schema_choices(const struct key *k, struct buf *out)
{
    buf_add_str(out, STR("\"enum\":["));
    for (unsigned i = 0; k->choices[i] != NULL; i++)
        buf_printf(out, "%s\"%s\"", i != 0 ? "," : "", k->choices[i]);
    if (k->type == KEY_TEXT && k->def[0] == '\0')
        buf_add_str(out, STR(",\"\""));
    buf_add_u8(out, ']');
}

static void schema_row(const struct key *k, struct buf *out)
{
    buf_printf(out, "\"%s\":{\"description\":", k->name);
    json_add_string(out, str_from(k->help));
    buf_add_u8(out, ',');
    switch (k->type) {
    case KEY_U32:
        buf_printf(out, "\"type\":\"integer\",\"minimum\":%llu,\"maximum\":%llu",
                   (unsigned long long)k->lo, (unsigned long long)k->hi);
        break;
    case KEY_MS:
    case KEY_MS64:
        buf_add_str(
            out, STR("\"type\":[\"string\",\"integer\"],\"pattern\":\"^(0|[0-9]+(ms|s|m|h|d))$\""));
        break;
    case KEY_SIZE:
        buf_add_str(
            out,
            STR("\"type\":[\"string\",\"integer\"],\"pattern\":\"^[0-9]+(B|k|KiB|m|MiB|g|GiB)?$\""));
        break;
    case KEY_BOOL:
        buf_add_str(out, STR("\"type\":\"boolean\""));
        break;
    case KEY_DOUBLE:
        buf_printf(out, "\"type\":\"number\",\"minimum\":%llu,\"maximum\":%llu",
                   (unsigned long long)k->lo, (unsigned long long)k->hi);
        break;
    case KEY_CHOICE:
        schema_choices(k, out);
        break;
    case KEY_FLAGS:
        buf_add_str(out, STR("\"type\":\"array\",\"items\":{"));
        schema_choices(k, out);
        buf_add_u8(out, '}');
        break;
    case KEY_TEXT:
        if (k->choices != NULL)
            schema_choices(k, out);
        else
            buf_add_str(out, STR("\"type\":[\"string\",\"number\"]"));
        break;
    case KEY_TEXTS:
        buf_add_str(out, STR("\"type\":\"array\",\"items\":{\"type\":[\"string\",\"number\"]}"));
        break;
    case KEY_TEXT_MAP:
    case KEY_SOURCE_MAP:
        buf_add_str(
            out,
            STR("\"type\":\"object\",\"additionalProperties\":{\"type\":[\"string\",\"number\"]}"));
        break;
    case KEY_BLOCK:
        schema_table(k->table, out);
        break;
    case KEY_BLOCKS:
        buf_add_str(out, STR("\"type\":\"array\",\"items\":{"));
        schema_table(k->table, out);
        buf_add_u8(out, '}');
        break;
    case KEY_EMBED:
        break;
    }
    buf_add_u8(out, '}');
}

static void schema_rows(const struct key *table, struct buf *out, bool *first)
{
    for (const struct key *k = table; k->name != NULL; k++) {
        if (k->type == KEY_EMBED) {
            schema_rows(k->table, out, first);
            continue;
        }
        buf_add_str(out, *first ? STR("\n") : STR(",\n"));
        *first = false;
        schema_row(k, out);
    }
}

static void schema_table(const struct key *table, struct buf *out)
{
    bool first = true;
    const char *comma = "";

    buf_add_str(out, STR("\"type\":\"object\",\"additionalProperties\":false,\"properties\":{"));
    schema_rows(table, out, &first);
    buf_add_str(out, STR("},\"required\":["));
    for (const struct key *k = table; k->name != NULL; k++) {
        if (k->required) {
            buf_printf(out, "%s\"%s\"", comma, k->name);
            comma = ",";
        }
    }
    buf_add_u8(out, ']');
}

void keys_schema(struct buf *out)
{
    buf_add_str(out, STR("{\"$schema\":\"https://json-schema.org/draft/2020-12/schema\",\n"
                         "\"title\":\"dubbogate configuration\","));
    schema_table(keys_top, out);
    buf_add_str(out, STR("}\n"));
}

/* ---------------------------------------------------------------- manual page */

static void put_choices(const struct key *k, struct buf *out)
{
    buf_printf(out, "%s", k->type == KEY_FLAGS ? "List of " : "One of ");
    for (unsigned i = 0; k->choices[i] != NULL; i++)
        buf_printf(out, "%s%s", i != 0 ? ", " : "", k->choices[i]);
}

static void man_range(const struct key *k, struct buf *out)
{
    switch (k->type) {
    case KEY_U32:
        buf_printf(out, "Number, %llu to %llu", (unsigned long long)k->lo,
                   (unsigned long long)k->hi);
        break;
    case KEY_MS:
    case KEY_MS64:
        buf_add_str(out, STR("Duration, "));
        put_ms(out, k->lo);
        buf_add_str(out, STR(" to "));
        put_ms(out, k->hi);
        break;
    case KEY_SIZE:
        buf_add_str(out, STR("Size, "));
        put_size(out, k->lo);
        buf_add_str(out, STR(" to "));
        put_size(out, k->hi);
        break;
    case KEY_BOOL:
        buf_add_str(out, STR("true or false"));
        break;
    case KEY_DOUBLE:
        buf_printf(out, "Number, %llu to %llu", (unsigned long long)k->lo,
                   (unsigned long long)k->hi);
        break;
    case KEY_CHOICE:
    case KEY_FLAGS:
        put_choices(k, out);
        break;
    case KEY_TEXT:
    case KEY_TEXTS:
        if (k->choices != NULL) {
            put_choices(k, out);
            break;
        }
        buf_printf(out, "%s%s", k->type == KEY_TEXTS ? "List of " : "",
                   k->form != NULL ? k->form : "text");
        break;
    case KEY_TEXT_MAP:
    case KEY_SOURCE_MAP:
        buf_add_str(out, STR("Map of names to texts"));
        break;
    case KEY_BLOCK:
    case KEY_BLOCKS:
    case KEY_EMBED:
        break;
    }
}

static void man_rows(const struct key *table, const char *prefix, struct buf *out)
{
    char inner[160];

    for (const struct key *k = table; k->name != NULL; k++) {
        if (k->type == KEY_EMBED) {
            man_rows(k->table, prefix, out);
            continue;
        }
        if (k->type == KEY_BLOCK || k->type == KEY_BLOCKS) {
            snprintf(inner, sizeof(inner), "%s%s%s.", prefix, k->name,
                     k->type == KEY_BLOCKS ? "[]" : "");
            buf_printf(out, ".SS %s%s%s\n%s\n", prefix, k->name, k->type == KEY_BLOCKS ? "[]" : "",
                       k->help);
            man_rows(k->table, inner, out);
            continue;
        }
        buf_printf(out, ".TP\n.B %s%s\n%s ", prefix, k->name, k->help);
        man_range(k, out);
        if (k->required)
            buf_add_str(out, STR(". Required"));
        else if (k->def != NULL && k->def[0] != '\0')
            buf_printf(out, ". Default %s", k->def);
        buf_printf(out, ". %s.\n", k->restart ? "Takes effect after a restart" : "Reloadable");
    }
}

void keys_man(struct buf *out)
{
    buf_add_str(
        out,
        STR(".\\\" Generated from the key table: make generate\n"
            ".TH dubbogate.yaml 5\n.SH NAME\ndubbogate.yaml \\- configuration of dubbogate\n"
            ".SH DESCRIPTION\nA YAML file. Times need a unit: ms s m h d. Sizes: B k m g (1024-based). "
            "${NAME} and ${NAME:-default} are taken from the environment, in values only.\n"
            "Values are inherited, key by key, from defaults to services to methods to routes.\n"
            ".SH KEYS\n"));
    man_rows(keys_top, "", out);
}
