#include "gateway/cmd_test.h"

#include <stdio.h>

#include "registry/store.h"
#include "gateway/cmd.h"
#include "gateway/keys.h"
#include "gateway/settings.h"

enum { TEXT_MAX = 64 * 1024 * 1024 };

static struct settings *load(const char *file, struct config_errors *errs)
{
    struct settings *s = settings_load(file, errs);
    struct buf text;

    buf_init(&text, TEXT_MAX);
    config_errors_print(errs, &text);
    fwrite(text.data != NULL ? text.data : (const uint8_t *)"", 1, text.len, stderr);
    buf_free(&text);
    return s;
}

/* Not an error: the daemon starts without it, but forgets the lists at a restart. */
static unsigned warn(const struct settings *s)
{
    struct err e = {0};

    if (s->process.state_dir.n == 0 || store_writable(s->process.state_dir.p, &e))
        return 0;
    fprintf(stderr, "%s: warning: process.state_dir: %s\n", s->file, e.text);
    return 1;
}

int cmd_test(const char *config_file, bool quiet)
{
    struct config_errors errs = {0};
    struct settings *s = load(config_file, &errs);
    unsigned warnings = 0;

    if (s == NULL) {
        size_t n = errs.n + errs.more;

        fprintf(stderr, "%s: configuration test failed: %zu error%s\n", config_file, n,
                n == 1 ? "" : "s");
        return EXIT_LOCAL;
    }
    warnings = warn(s);
    if (!quiet)
        printf("%s: configuration ok (%zu services, %zu routes, hash %s%s)\n", config_file,
               s->n_services, s->n_routes, s->hash, warnings != 0 ? ", 1 warning" : "");
    settings_put(s);
    return EXIT_GOOD;
}

static int print(void (*make)(struct buf *out))
{
    struct buf text;

    buf_init(&text, TEXT_MAX);
    make(&text);
    fwrite(text.data, 1, text.len, stdout);
    buf_free(&text);
    return EXIT_GOOD;
}

int cmd_dump(const char *config_file)
{
    struct config_errors errs = {0};
    struct settings *s = load(config_file, &errs);
    struct buf text;

    if (s == NULL)
        return EXIT_LOCAL;
    buf_init(&text, TEXT_MAX);
    keys_dump(s, &text);
    fwrite(text.data, 1, text.len, stdout);
    buf_free(&text);
    settings_put(s);
    return EXIT_GOOD;
}

int cmd_print_schema(int argc, char **argv)
{
    return print(keys_schema);
}

int cmd_print_man(int argc, char **argv)
{
    return print(keys_man);
}
