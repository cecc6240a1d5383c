/*
 * Picks a command.  Without one it is the daemon, so that unit files and habits from nginx work.
 */
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "gateway/cmd.h"
#include "gateway/cmd_run.h"
#include "gateway/cmd_test.h"
#include "gateway/version.h"

struct options {
    const char *config;
    bool test;
    bool dump;
    bool quiet;
};

static const char *const known[] = {"-c",     "-t", "-T", "-q",       "-h",
                                    "--help", "-v", "-V", "--version"};

/* -1 = go on, else the exit code. */
static int parse(int argc, char **argv, struct options *o)
{
    for (int i = 1; i < argc; i++) {
        const char *a = argv[i];

        if (strcmp(a, "-c") == 0) {
            if (++i == argc) {
                fprintf(stderr, "dubbogate: -c needs a file name\n");
                return EXIT_USAGE;
            }
            o->config = argv[i];
        } else if (strcmp(a, "-t") == 0) {
            o->test = true;
        } else if (strcmp(a, "-T") == 0) {
            o->dump = true;
        } else if (strcmp(a, "-q") == 0) {
            o->quiet = true;
        } else if (strcmp(a, "-h") == 0 || strcmp(a, "--help") == 0) {
            cmd_print_help();
            return EXIT_GOOD;
        } else if (strcmp(a, "-v") == 0 || strcmp(a, "-V") == 0 || strcmp(a, "--version") == 0) {
            version_print(a[1] != 'v');
            return EXIT_GOOD;
        } else {
            return cmd_unknown_option(a, known, sizeof(known) / sizeof(known[0]));
        }
    }
    return -1;
}

int main(int argc, char **argv)
{
    const struct cmd *cmd = argc > 1 ? cmd_find(argv[1]) : NULL;
    struct options o = {.config = run_default_config()};
    int rc = 0;

    hash_seed(hash_random_seed());
    if (cmd != NULL)
        return cmd->run(argc - 1, argv + 1);
    rc = parse(argc, argv, &o);
    if (rc >= 0)
        return rc;
    if (o.dump)
        return cmd_dump(o.config);
    if (o.test)
        return cmd_test(o.config, o.quiet);
    return cmd_run(o.config);
}
