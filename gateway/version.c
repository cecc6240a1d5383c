#include "gateway/version.h"

#include <gnutls/gnutls.h>
#include <stdio.h>

#include <ev.h>
#include <jansson.h>
#include <microhttpd.h>
#include <yaml.h>
#include <zlib.h>

struct library {
    const char *name;
    char compiled[24];
    char loaded[24];
};

enum { LIBRARIES = 6 };

static void print_hex_version(char out[24], unsigned v)
{
    snprintf(out, 24, "%x.%x.%x", v >> 24, v >> 16 & 0xff, v >> 8 & 0xff);
}

static void collect(struct library l[LIBRARIES])
{
    l[0].name = "libmicrohttpd";
    print_hex_version(l[0].compiled, MHD_VERSION);
    snprintf(l[0].loaded, sizeof(l[0].loaded), "%s", MHD_get_version());
    l[1].name = "libev";
    snprintf(l[1].compiled, sizeof(l[1].compiled), "%d.%d", EV_VERSION_MAJOR, EV_VERSION_MINOR);
    snprintf(l[1].loaded, sizeof(l[1].loaded), "%d.%d", ev_version_major(), ev_version_minor());
    l[2].name = "jansson";
    snprintf(l[2].compiled, sizeof(l[2].compiled), "%s", JANSSON_VERSION);
    snprintf(l[2].loaded, sizeof(l[2].loaded), "%s", jansson_version_str());
    l[3].name = "libyaml";
    snprintf(l[3].compiled, sizeof(l[3].compiled), "%s", "-"); /* its header tells none */
    snprintf(l[3].loaded, sizeof(l[3].loaded), "%s", yaml_get_version_string());
    l[4].name = "GnuTLS";
    snprintf(l[4].compiled, sizeof(l[4].compiled), "%s", GNUTLS_VERSION);
    snprintf(l[4].loaded, sizeof(l[4].loaded), "%s", gnutls_check_version(NULL));
    l[5].name = "zlib";
    snprintf(l[5].compiled, sizeof(l[5].compiled), "%s", ZLIB_VERSION);
    snprintf(l[5].loaded, sizeof(l[5].loaded), "%s", zlibVersion());
}

void version_print(bool libraries)
{
    struct library l[LIBRARIES] = {0};

    printf("dubbogate %s\n", VERSION);
    if (!libraries)
        return;
    collect(l);
    for (int i = 0; i < LIBRARIES; i++)
        printf("  %-14s compiled %s, loaded %s\n", l[i].name, l[i].compiled, l[i].loaded);
}

void version_libraries_json(struct buf *out)
{
    struct library l[LIBRARIES] = {0};

    collect(l);
    buf_add_u8(out, '{');
    for (int i = 0; i < LIBRARIES; i++)
        buf_printf(out, "%s\"%s\":{\"compiled\":\"%s\",\"loaded\":\"%s\"}", i != 0 ? "," : "",
                   l[i].name, l[i].compiled, l[i].loaded);
    buf_add_u8(out, '}');
}
