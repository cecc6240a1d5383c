#include "codec/jtype.h"

#include "base/fatal.h"

enum { NAME_MAX_LEN = 512, DIMS_MAX = 16 };

struct known {
    const char *name;
    enum jtype_kind kind;
    bool primitive;
};

static const struct known known[] = {
    {"boolean", JTYPE_BOOLEAN, true},
    {"byte", JTYPE_BYTE, true},
    {"short", JTYPE_SHORT, true},
    {"int", JTYPE_INT, true},
    {"long", JTYPE_LONG, true},
    {"float", JTYPE_FLOAT, true},
    {"double", JTYPE_DOUBLE, true},
    {"char", JTYPE_CHAR, true},
    {"java.lang.Boolean", JTYPE_BOOLEAN, false},
    {"java.lang.Byte", JTYPE_BYTE, false},
    {"java.lang.Short", JTYPE_SHORT, false},
    {"java.lang.Integer", JTYPE_INT, false},
    {"java.lang.Long", JTYPE_LONG, false},
    {"java.lang.Float", JTYPE_FLOAT, false},
    {"java.lang.Double", JTYPE_DOUBLE, false},
    {"java.lang.Character", JTYPE_CHAR, false},
    {"java.lang.String", JTYPE_STRING, false},
    {"java.lang.CharSequence", JTYPE_STRING, false},
    {"java.lang.Class", JTYPE_STRING, false},
    {"java.lang.Number", JTYPE_NUMBER, false},
    {"java.math.BigDecimal", JTYPE_BIG_DECIMAL, false},
    {"java.math.BigInteger", JTYPE_BIG_INTEGER, false},
    {"java.util.Date", JTYPE_DATE, false},
    {"java.sql.Date", JTYPE_VALUE, false},
    {"java.sql.Time", JTYPE_VALUE, false},
    {"java.sql.Timestamp", JTYPE_VALUE, false},
    {"java.util.Calendar", JTYPE_VALUE, false},
    {"java.util.UUID", JTYPE_VALUE, false},
    {"java.util.Locale", JTYPE_VALUE, false},
    {"java.util.concurrent.atomic.AtomicLong", JTYPE_VALUE, false},
    {"java.util.concurrent.atomic.AtomicInteger", JTYPE_VALUE, false},
    {"java.util.concurrent.atomic.AtomicBoolean", JTYPE_VALUE, false},
    {"java.time.LocalDate", JTYPE_VALUE, false},
    {"java.time.LocalTime", JTYPE_VALUE, false},
    {"java.time.LocalDateTime", JTYPE_VALUE, false},
    {"java.time.Instant", JTYPE_VALUE, false},
    {"java.time.Duration", JTYPE_VALUE, false},
    {"java.time.Period", JTYPE_VALUE, false},
    {"java.time.Year", JTYPE_VALUE, false},
    {"java.time.YearMonth", JTYPE_VALUE, false},
    {"java.time.MonthDay", JTYPE_VALUE, false},
    {"java.time.ZoneId", JTYPE_VALUE, false},
    {"java.time.ZoneOffset", JTYPE_VALUE, false},
    {"java.time.OffsetDateTime", JTYPE_VALUE, false},
    {"java.time.OffsetTime", JTYPE_VALUE, false},
    {"java.time.ZonedDateTime", JTYPE_VALUE, false},
    {"java.lang.Object", JTYPE_OBJECT, false},
    {"java.util.Collection", JTYPE_LIST, false},
    {"java.lang.Iterable", JTYPE_LIST, false},
    {"java.util.List", JTYPE_LIST, false},
    {"java.util.ArrayList", JTYPE_LIST, false},
    {"java.util.LinkedList", JTYPE_LIST, false},
    {"java.util.Set", JTYPE_LIST, false},
    {"java.util.HashSet", JTYPE_LIST, false},
    {"java.util.LinkedHashSet", JTYPE_LIST, false},
    {"java.util.Map", JTYPE_MAP, false},
    {"java.util.HashMap", JTYPE_MAP, false},
    {"java.util.LinkedHashMap", JTYPE_MAP, false},
    {"java.util.TreeMap", JTYPE_MAP, false},
    {"java.util.SortedMap", JTYPE_MAP, false},
    {"java.util.NavigableMap", JTYPE_MAP, false},
    {"java.util.concurrent.ConcurrentMap", JTYPE_MAP, false},
    {"java.util.concurrent.ConcurrentHashMap", JTYPE_MAP, false},
    {"java.util.SortedSet", JTYPE_UNSUPPORTED, false},
    {"java.util.NavigableSet", JTYPE_UNSUPPORTED, false},
    {"java.util.TreeSet", JTYPE_UNSUPPORTED, false},
    {"java.util.Queue", JTYPE_UNSUPPORTED, false},
    {"java.util.Deque", JTYPE_UNSUPPORTED, false},
    {"java.util.Optional", JTYPE_UNSUPPORTED, false},
};

static const struct known *find(struct str name)
{
    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        if (str_is(name, known[i].name))
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

/* "Long" -> "java.lang.Long", also with a typing slip. */
static struct str suggestion(struct str s)
{
    size_t best_distance = s.n / 3 > 1 ? s.n / 3 : 1;
    struct str best = STR_NONE;

    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        struct str full = str_from(known[i].name);
        struct str simple = full;

        for (size_t j = 0; j < ARRAY_LEN(suggest_from); j++) {
            struct str prefix = str_from(suggest_from[j]);

            if (str_starts(full, prefix))
                simple = str_sub(full, prefix.n, full.n);
        }
        if (str_eq_nocase(simple, s) && !known[i].primitive)
            return full;
        if (str_distance(simple, s) < best_distance) {
            best_distance = str_distance(simple, s);
            best = full;
        }
    }
    return best;
}

static bool refuse(struct str text, struct err *e)
{
    size_t angle = str_find(text, '<');
    struct str near = STR_NONE;

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
    near = suggestion(text);
    if (near.n != 0)
        err_set(e, "\"" STR_FMT "\" is not a full Java type; did you mean \"" STR_FMT "\"?",
                STR_ARG(text), STR_ARG(near));
    else
        err_set(e,
                "\"" STR_FMT
                "\" is not a full Java type such as int, java.lang.String or com.example.User",
                STR_ARG(str_sub(text, 0, 100)));
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
