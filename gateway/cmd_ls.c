/*
 * dubbogate ls: what the registry has.  Reads only.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "registry/listing.h"
#include "registry/provider.h"
#include "gateway/cmd.h"

struct ls_opts {
    const char *registry;
    const char *root;
    const char *pattern;
    bool details;
};

static const char *const known[] = {"-r", "-l", "--root"};

static int parse(int argc, char **argv, struct ls_opts *o)
{
    *o = (struct ls_opts){.registry = getenv("DUBBOGATE_REGISTRY"), .root = "/dubbo"};
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "-r") == 0 && i + 1 < argc)
            o->registry = argv[++i];
        else if (strcmp(argv[i], "--root") == 0 && i + 1 < argc)
            o->root = argv[++i];
        else if (strcmp(argv[i], "-l") == 0)
            o->details = true;
        else if (argv[i][0] != '-' && o->pattern == NULL)
            o->pattern = argv[i];
        else
            return cmd_unknown_option(argv[i], known, (unsigned)ARRAY_LEN(known));
    }
    if (o->registry == NULL) {
        fprintf(stderr, "dubbogate: ls needs -r zookeeper://HOST:PORT\n");
        return EXIT_USAGE;
    }
    return EXIT_GOOD;
}

/* Of a key, INTERFACE:VERSION@GROUP, the interface. */
static bool wanted(const struct ls_opts *o, struct str name)
{
    char word[500];
    char pattern[512];

    if (o->pattern == NULL)
        return true;
    if (strchr(o->pattern, '*') != NULL)
        return str_glob(str_from(o->pattern), name);
    str_copy(str_sub(str_from(o->pattern), 0, strcspn(o->pattern, ":@")), word, sizeof(word));
    snprintf(pattern, sizeof(pattern), "*%s*", word);
    return str_glob(str_from(pattern), name);
}

static const char *or_dash(struct str s, char *out, size_t cap)
{
    str_copy(s.n != 0 ? s : STR("-"), out, cap);
    return out;
}

static void print_provider(const struct provider *p)
{
    char release[32];

    printf("    " STR_FMT ":%u  weight %u, release %s, application " STR_FMT "%s%s\n",
           STR_ARG(p->host), (unsigned)p->port, p->weight,
           or_dash(p->release, release, sizeof(release)), STR_ARG(p->application),
           p->unusable != USABLE ? ", not usable: " : "",
           p->unusable != USABLE ? unusable_name(p->unusable) : "");
}

/* By the application of `p`. */
static void print_methods(const struct ls_opts *o, const struct provider *p)
{
    struct definition_view d;
    struct arena a;
    struct err e = {0};

    arena_init(&a);
    if (!listing_methods(o->registry, o->root, p, &a, &d, &e))
        printf("    methods of " STR_FMT " cannot be read: %s\n", STR_ARG(p->application), e.text);
    else if (d.n_methods == 0)
        printf("    " STR_FMT " has published no methods%s\n", STR_ARG(p->application),
               p->release.n == 0 ? "; registries[].telnet_methods would ask its providers of 2.6"
                                 : "");
    else
        printf("    methods by the report of " STR_FMT ":\n", STR_ARG(p->application));
    for (size_t i = 0; i < d.n_methods; i++) {
        struct buf line;

        buf_init(&line, DEFINITION_NODE_MAX);
        definition_print_method(&d.methods[i], &line);
        printf("      " STR_FMT "\n", STR_ARG(buf_str(&line)));
        buf_free(&line);
    }
    arena_free(&a);
}

static bool same_service(const struct provider *a, const struct provider *b)
{
    return str_eq(a->version, b->version) && str_eq(a->group, b->group);
}

/* Those of the service of v[first], one read per application. */
static void print_details(const struct ls_opts *o, const struct provider *v, size_t first, size_t n)
{
    for (size_t i = first; i < n; i++) {
        if (same_service(&v[i], &v[first]))
            print_provider(&v[i]);
    }
    for (size_t i = first; i < n; i++) {
        bool seen = !same_service(&v[i], &v[first]);

        for (size_t j = first; j < i && !seen; j++)
            seen = same_service(&v[j], &v[i]) && str_eq(v[j].application, v[i].application);
        if (!seen)
            print_methods(o, &v[i]);
    }
}

/* One line per version and group, in order of first appearance. */
static void print_interface(const struct ls_opts *o, struct str interface, const struct provider *v,
                            size_t n)
{
    char version[160];
    char group[160];

    for (size_t i = 0; i < n; i++) {
        size_t count = 0;
        bool first = true;

        for (size_t j = 0; j < i; j++)
            first = first && !same_service(&v[j], &v[i]);
        if (!first)
            continue;
        for (size_t j = i; j < n; j++)
            count += same_service(&v[j], &v[i]) ? 1U : 0U;
        printf("%-50.*s %-10s %-10s %9zu\n", (int)interface.n, interface.p,
               or_dash(v[i].version, version, sizeof(version)),
               or_dash(v[i].group, group, sizeof(group)), count);
        if (o->details)
            print_details(o, v, i, n);
    }
}

/* What only applications of 3.x have is exported by their instances, each of which would have to be asked. */
static void print_mapped(const struct ls_opts *o, struct arena *a)
{
    struct listing mapped = {0};
    struct err e = {0};
    bool first = true;

    if (!listing_mapped(o->registry, o->root, a, &mapped, &e))
        return;
    for (size_t i = 0; i < mapped.n; i++) {
        struct listing apps = {0};
        size_t *n = NULL;

        if (!wanted(o, mapped.names[i]) ||
            !listing_applications(o->registry, o->root, mapped.names[i], a, &apps, &n, &e) ||
            apps.n == 0)
            continue;
        printf("%s",
               first ? "\nINTERFACE AND APPLICATIONS THAT HAVE IT (instances; what they export: "
                       "\"dubbogate why\")\n"
                     : "");
        first = false;
        printf("%-50.*s ", (int)mapped.names[i].n, mapped.names[i].p);
        for (size_t j = 0; j < apps.n; j++)
            printf("%s" STR_FMT " (%zu)", j == 0 ? "" : ", ", STR_ARG(apps.names[j]), n[j]);
        printf("\n");
    }
}

int cmd_ls(int argc, char **argv)
{
    struct ls_opts o;
    struct listing interfaces = {0};
    struct arena a;
    struct err e = {0};
    int rc = parse(argc, argv, &o);

    if (rc != EXIT_GOOD)
        return rc;
    arena_init(&a);
    if (!listing_interfaces(o.registry, o.root, &a, &interfaces, &e)) {
        fprintf(stderr, "dubbogate: %s\n", e.text);
        arena_free(&a);
        return EXIT_NO_PROVIDER;
    }
    printf("%-50s %-10s %-10s %9s\n", "INTERFACE", "VERSION", "GROUP", "PROVIDERS");
    for (size_t i = 0; i < interfaces.n; i++) {
        struct listing urls = {0};
        struct provider *v = NULL;
        size_t n = 0;

        if (!wanted(&o, interfaces.names[i]) ||
            !listing_providers(o.registry, o.root, interfaces.names[i], &a, &urls, &e))
            continue;
        v = arena_alloc(&a, (urls.n + 1) * sizeof(*v));
        for (size_t j = 0; j < urls.n; j++)
            n += provider_from_url(urls.names[j], &a, &v[n], &e) ? 1U : 0U;
        print_interface(&o, interfaces.names[i], v, n);
    }
    print_mapped(&o, &a);
    listing_end();
    arena_free(&a);
    return EXIT_GOOD;
}
