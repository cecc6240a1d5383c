#include "codec/jtype.h"

#include "codec/utf.h"

enum { NAME_MAX_LEN = 512, DIMS_MAX = 16, SUGGEST_MAX_LEN = 24, QUOTED_MAX = 80 };

struct known {
    struct str name;
    enum jtype_kind kind;
    bool primitive;
};

static const struct known known[] = {
    {STR_INIT("boolean"), JTYPE_BOOLEAN, true},
    {STR_INIT("byte"), JTYPE_BYTE, true},
    {STR_INIT("short"), JTYPE_SHORT, true},
    {STR_INIT("int"), JTYPE_INT, true},
    {STR_INIT("long"), JTYPE_LONG, true},
    {STR_INIT("float"), JTYPE_FLOAT, true},
    {STR_INIT("double"), JTYPE_DOUBLE, true},
    {STR_INIT("char"), JTYPE_CHAR, true},
    {STR_INIT("java.lang.Boolean"), JTYPE_BOOLEAN, false},
    {STR_INIT("java.lang.Byte"), JTYPE_BYTE, false},
    {STR_INIT("java.lang.Short"), JTYPE_SHORT, false},
    {STR_INIT("java.lang.Integer"), JTYPE_INT, false},
    {STR_INIT("java.lang.Long"), JTYPE_LONG, false},
    {STR_INIT("java.lang.Float"), JTYPE_FLOAT, false},
    {STR_INIT("java.lang.Double"), JTYPE_DOUBLE, false},
    {STR_INIT("java.lang.Character"), JTYPE_CHAR, false},
    {STR_INIT("java.lang.String"), JTYPE_STRING, false},
    {STR_INIT("java.lang.CharSequence"), JTYPE_STRING, false},
    {STR_INIT("java.lang.Class"), JTYPE_STRING, false},
    {STR_INIT("java.lang.Number"), JTYPE_NUMBER, false},
    {STR_INIT("java.math.BigDecimal"), JTYPE_BIG_DECIMAL, false},
    {STR_INIT("java.math.BigInteger"), JTYPE_BIG_INTEGER, false},
    {STR_INIT("java.util.Date"), JTYPE_DATE, false},
    {STR_INIT("java.sql.Date"), JTYPE_VALUE, false},
    {STR_INIT("java.sql.Time"), JTYPE_VALUE, false},
    {STR_INIT("java.sql.Timestamp"), JTYPE_VALUE, false},
    {STR_INIT("java.util.Calendar"), JTYPE_VALUE, false},
    {STR_INIT("java.util.UUID"), JTYPE_VALUE, false},
    {STR_INIT("java.util.Locale"), JTYPE_VALUE, false},
    {STR_INIT("java.util.concurrent.atomic.AtomicLong"), JTYPE_VALUE, false},
    {STR_INIT("java.util.concurrent.atomic.AtomicInteger"), JTYPE_VALUE, false},
    {STR_INIT("java.util.concurrent.atomic.AtomicBoolean"), JTYPE_VALUE, false},
    {STR_INIT("java.time.LocalDate"), JTYPE_VALUE, false},
    {STR_INIT("java.time.LocalTime"), JTYPE_VALUE, false},
    {STR_INIT("java.time.LocalDateTime"), JTYPE_VALUE, false},
    {STR_INIT("java.time.Instant"), JTYPE_VALUE, false},
    {STR_INIT("java.time.Duration"), JTYPE_VALUE, false},
    {STR_INIT("java.time.Period"), JTYPE_VALUE, false},
    {STR_INIT("java.time.Year"), JTYPE_VALUE, false},
    {STR_INIT("java.time.YearMonth"), JTYPE_VALUE, false},
    {STR_INIT("java.time.MonthDay"), JTYPE_VALUE, false},
    {STR_INIT("java.time.ZoneId"), JTYPE_VALUE, false},
    {STR_INIT("java.time.ZoneOffset"), JTYPE_VALUE, false},
    {STR_INIT("java.time.OffsetDateTime"), JTYPE_VALUE, false},
    {STR_INIT("java.time.OffsetTime"), JTYPE_VALUE, false},
    {STR_INIT("java.time.ZonedDateTime"), JTYPE_VALUE, false},
    {STR_INIT("java.lang.Object"), JTYPE_OBJECT, false},
    {STR_INIT("java.util.Collection"), JTYPE_LIST, false},
    {STR_INIT("java.lang.Iterable"), JTYPE_LIST, false},
    {STR_INIT("java.util.List"), JTYPE_LIST, false},
    {STR_INIT("java.util.ArrayList"), JTYPE_LIST, false},
    {STR_INIT("java.util.LinkedList"), JTYPE_LIST, false},
    {STR_INIT("java.util.Set"), JTYPE_LIST, false},
    {STR_INIT("java.util.HashSet"), JTYPE_LIST, false},
    {STR_INIT("java.util.LinkedHashSet"), JTYPE_LIST, false},
    {STR_INIT("java.util.Map"), JTYPE_MAP, false},
    {STR_INIT("java.util.HashMap"), JTYPE_MAP, false},
    {STR_INIT("java.util.LinkedHashMap"), JTYPE_MAP, false},
    {STR_INIT("java.util.TreeMap"), JTYPE_MAP, false},
    {STR_INIT("java.util.SortedMap"), JTYPE_MAP, false},
    {STR_INIT("java.util.NavigableMap"), JTYPE_MAP, false},
    {STR_INIT("java.util.concurrent.ConcurrentMap"), JTYPE_MAP, false},
    {STR_INIT("java.util.concurrent.ConcurrentHashMap"), JTYPE_MAP, false},
    {STR_INIT("java.util.SortedSet"), JTYPE_UNSUPPORTED, false},
    {STR_INIT("java.util.NavigableSet"), JTYPE_UNSUPPORTED, false},
    {STR_INIT("java.util.TreeSet"), JTYPE_UNSUPPORTED, false},
    {STR_INIT("java.util.Queue"), JTYPE_UNSUPPORTED, false},
    {STR_INIT("java.util.Deque"), JTYPE_UNSUPPORTED, false},
    {STR_INIT("java.util.Optional"), JTYPE_UNSUPPORTED, false},
};

static const struct known *find(struct str name)
{
    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        if (str_eq(name, known[i].name))
            return &known[i];
    }
    return NULL;
}

static bool is_name_char(char c, bool first)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$' ||
           (!first && c >= '0' && c <= '9');
}

/* Segments of letters, digits, _ and $ with dots between. */
static bool is_class_name(struct str s)
{
    bool first = true;

    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] == '.' && !first) {
            first = true;
            continue;
        }
        if (!is_name_char(s.p[i], first))
            return false;
        first = false;
    }
    return s.n != 0 && !first;
}

static const char *const suggest_from[] = {"java.lang.", "java.util.", "java.math.", "java.time.",
                                           "java.sql."};

/*
 * "Long" -> "java.lang.Long", also with a typing slip.  Clients may ask this for every type of a call, so
 * the distance is worked out for names of about the same length only.
 */
static struct str suggestion(struct str s)
{
    size_t best_distance = s.n / 3 > 1 ? s.n / 3 : 1;
    struct str best = STR_NONE;

    if (s.n > SUGGEST_MAX_LEN)
        return STR_NONE;
    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        struct str full = known[i].name;
        struct str simple = full;

        for (size_t j = 0; j < ARRAY_LEN(suggest_from); j++) {
            struct str prefix = str_from(suggest_from[j]);

            if (str_starts(full, prefix))
                simple = str_sub(full, prefix.n, full.n);
        }
        if (str_eq_nocase(simple, s) && !known[i].primitive)
            return full;
        size_t apart = simple.n > s.n ? simple.n - s.n : s.n - simple.n;

        /* 1 would be met by equal names only, and those were looked for above */
        if (best_distance == 1 || apart >= best_distance)
            continue;
        size_t distance = str_distance(simple, s);

        if (distance < best_distance) {
            best_distance = distance;
            best = full;
        }
    }
    return best;
}

static bool refuse(struct str text, struct err *e)
{
    size_t angle = str_find(text, '<');
    struct str near = suggestion(text);

    text = utf_cut(text, QUOTED_MAX);
    if (angle < text.n) {
        err_set(e, "\"" STR_FMT "\": leave the type arguments out; write " STR_FMT, STR_ARG(text),
                STR_ARG(str_sub(text, 0, angle)));
        return false;
    }
    if (text.n > 2 && text.p[0] == 'L' && text.p[text.n - 1] == ';') {
        err_set(e,
                "\"" STR_FMT "\" is a JVM descriptor; write it as in source, e.g. java.lang.String",
                STR_ARG(text));
        return false;
    }
    if (near.n != 0)
        err_set(e, "\"" STR_FMT "\" is not a full Java type; did you mean \"" STR_FMT "\"?",
                STR_ARG(text), STR_ARG(near));
    else
        err_set(e,
                "\"" STR_FMT
                "\" is not a full Java type such as int, java.lang.String or com.example.User",
                STR_ARG(text));
    return false;
}

static const struct jtype *element_of(struct arena *a, struct str base, unsigned dims,
                                      const struct known *k);

static void fill(struct arena *a, struct jtype *out, struct str base, unsigned dims,
                 const struct known *k)
{
    *out = (struct jtype){.dims = dims};
    if (dims == 0) {
        out->kind = k != NULL ? k->kind : JTYPE_OTHER;
        out->primitive = k != NULL && k->primitive;
        out->name = base;
        return;
    }
    char *name = arena_alloc(a, base.n + (size_t)2 * dims + 1);

    __builtin_memcpy(name, base.p, base.n);
    for (unsigned i = 0; i < dims; i++)
        __builtin_memcpy(name + base.n + (size_t)2 * i, "[]", 2);
    out->kind = JTYPE_ARRAY;
    out->name = (struct str){name, base.n + (size_t)2 * dims};
    out->element = element_of(a, base, dims - 1, k);
}

static const struct jtype *element_of(struct arena *a, struct str base, unsigned dims,
                                      const struct known *k)
{
    struct jtype *t = arena_alloc(a, sizeof(*t));

    fill(a, t, base, dims, k);
    return t;
}

/* The JVM's spelling of arrays, which Dubbo takes as well: "[I", "[Ljava.lang.String;". */
static bool from_descriptor(struct str *s, unsigned *dims)
{
    static const char letters[] = "ZBSIJFDC";
    static const char *const names[] = {"boolean", "byte",  "short",  "int",
                                        "long",    "float", "double", "char"};

    while (s->n != 0 && s->p[0] == '[') {
        *s = str_sub(*s, 1, s->n);
        (*dims)++;
    }
    if (s->n > 2 && s->p[0] == 'L' && s->p[s->n - 1] == ';') {
        *s = str_sub(*s, 1, s->n - 1);
        return true;
    }
    for (size_t i = 0; s->n == 1 && i < sizeof(letters) - 1; i++) {
        if (s->p[0] == letters[i]) {
            *s = str_from(names[i]);
            return true;
        }
    }
    return false;
}

bool jtype_parse(struct str text, struct arena *a, struct jtype *out, struct err *e)
{
    struct str base = str_trim(text);
    const struct known *k = NULL;
    unsigned dims = 0;

    if (base.n == 0 || base.n > NAME_MAX_LEN) {
        err_set(e, "a Java type is missing or longer than %d characters", NAME_MAX_LEN);
        return false;
    }
    if (base.p[0] == '[' && !from_descriptor(&base, &dims))
        return refuse(text, e);
    if (str_ends(base, STR("..."))) { /* varargs: Dubbo refuses the dots */
        base = str_sub(base, 0, base.n - 3);
        dims++;
    }
    while (str_ends(base, STR("[]"))) {
        base = str_sub(base, 0, base.n - 2);
        dims++;
    }
    k = find(base);
    if (dims > DIMS_MAX || !is_class_name(base) ||
        (k == NULL && str_find(base, '.') == base.n && suggestion(base).n != 0) ||
        (k == NULL && str_find(base, '.') == base.n && base.n == 1))
        return refuse(text, e);
    fill(a, out, arena_str(a, base), dims, k);
    return true;
}

/* ---------------------------------------------------------------- classes */

const struct jtype *jtype_property(const struct jtype_class *c, struct str name)
{
    size_t from = 0;
    size_t to = c->n_properties;

    while (from < to) {
        size_t middle = from + (to - from) / 2;
        int order = str_cmp(name, c->properties[middle].name);

        if (order == 0)
            return c->properties[middle].type;
        if (order < 0)
            to = middle;
        else
            from = middle + 1;
    }
    return NULL;
}

bool jtype_has_constant(const struct jtype_class *c, struct str name)
{
    for (size_t i = 0; i < c->n_enums; i++) {
        if (str_eq(c->enums[i], name))
            return true;
    }
    return false;
}
