/*
 * The configuration: plain immutable structs, one per block, with every value resolved (defaults, then
 * services, then methods, then routes, key by key).
 *
 * Loaded by the control thread, counted, shared by all threads; all memory belongs to its arena.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/ref.h"
#include "base/str.h"
#include "codec/json_args.h"
#include "codec/jtype.h"
#include "codec/reply.h"
#include "registry/network.h"
#include "gateway/outlier.h"

struct balancer;
struct cluster;

struct text_list {
    struct str *v;
    size_t n;
};

struct text_pair {
    struct str name;
    struct str value;
};

struct text_map {
    struct text_pair *v;
    size_t n;
};

/* Where a value of a request comes from: path.X, query.X, query.X[], header.X, body, body.a.b, … */
enum source_kind {
    SOURCE_PATH,
    SOURCE_QUERY,
    SOURCE_HEADER,
    SOURCE_BODY,
    SOURCE_CLIENT_IP,
    SOURCE_REQUEST_ID,
    SOURCE_REQUEST_METHOD,
    SOURCE_REQUEST_PATH,
    SOURCE_REQUEST_HOST,
    SOURCE_CONST,
};

struct source {
    enum source_kind kind;
    struct str text; /* as configured, for error messages */
    struct str
        name; /* of the variable, parameter or header; member path of the body; the constant */
    bool all; /* query.X[]: every value as a list */
};

struct named_source {
    struct str name; /* of the member or attachment */
    struct source source;
};

struct source_map {
    struct named_source *v;
    size_t n;
};

struct retry_policy {
    uint32_t attempts;
    uint32_t conditions;            /* bits 1 << enum retry_condition */
    uint32_t idempotent_conditions; /* the same */
    uint32_t per_try_timeout_ms;
    uint32_t budget_percent;
    uint32_t budget_min;
};

struct breaker_policy {
    uint32_t max_requests; /* whole daemon */
    uint32_t max_requests_per_provider;
};

struct request_policy {
    uint32_t class_key; /* enum args_class_key */
    struct text_list allow_classes;
    uint32_t duplicate_keys; /* 0 reject, 1 last */
    uint32_t decimals;       /* 0 auto, 1 string */
    struct str timezone;     /* "UTC" or ±HH:MM */
    int32_t utc_offset_s;
    bool preserve_order;
    uint32_t unknown_query; /* 0 ignore, 1 reject */
};

struct success_policy {
    struct str field; /* empty = no test */
    struct text_list values;
    struct str message_field;
    uint32_t status;
};

enum exception_detail { EXCEPTION_NONE, EXCEPTION_MESSAGE, EXCEPTION_CLASS_AND_MESSAGE };

struct response_policy {
    uint32_t envelope; /* 0 none, 1 standard */
    struct str unwrap; /* member path; empty = whole */
    struct success_policy success;
    uint32_t status;
    uint32_t null_status;
    struct text_map headers;
    uint32_t class_key; /* 0 strip, 1 keep */
    bool omit_nulls;
    uint32_t long_as_string; /* enum reply_longs */
    uint32_t decimal;        /* 0 number, 1 string */
    uint32_t date;           /* enum reply_date */
    uint32_t bytes;          /* 0 base64, 1 array */
    uint32_t non_finite;     /* 0 string, 1 null */
    uint32_t cycle;          /* 0 null, 1 error */
    bool rebuild;
    uint32_t exception_detail; /* enum exception_detail */
};

/* What is inherited from defaults to services to methods to routes. */
struct policy {
    uint32_t timeout_ms;
    bool
        timeout_set; /* by the operator, at any level: then a provider's own timeout does not count */
    uint32_t max_timeout_ms;
    struct retry_policy retry;
    struct str loadbalance;
    const struct balancer *balancer; /* NULL: as the provider wishes, else p2c */
    struct {
        uint32_t nodes; /* 0: as the provider wishes */
        struct text_list arguments;
        struct str indexes; /* the same as "0,2"; empty: as the provider wishes */
    } hash;
    struct text_list hash_policy_text;
    struct source *hash_policy; /* as many */
    uint32_t connections;
    uint32_t connect_timeout_ms;
    uint32_t heartbeat_ms;
    struct outlier_policy outlier;
    struct breaker_policy breakers;
    struct source_map attachments;
    struct request_policy request;
    struct response_policy response;
    /* made from the above after loading */
    struct args_opts args_opts;
    struct reply_opts reply_opts;
};

struct method {
    struct str name;
    struct text_list type_names;
    const struct jtype *types; /* one per type name */
    struct text_list params;
    bool idempotent;
    struct policy policy;
};

struct service {
    struct str name;
    struct str interface;
    struct str version;
    struct str group;
    struct str registry;        /* name; empty = the only one */
    struct text_list providers; /* fixed addresses; then no registry is asked */
    uint32_t discovery;         /* enum discovery */
    struct text_list provided_by;
    bool preload;
    struct method *methods;
    size_t n_methods;
    struct policy policy;
    size_t index;      /* in settings->services */
    struct refkey key; /* of interface, version and group */
};

struct route_arg {
    struct str from_text;
    struct source from; /* when from_text is not empty */
    struct str type_name;
    const struct jtype *type; /* NULL = none given */
    struct source_map fields;
    struct source_map set;
    bool required;
    struct str default_text;
    bool has_default;
    bool all;
};

struct exception_rule {
    struct str class; /* "*" at the end stands for anything */
    uint32_t status;
    struct str code;
};

struct route {
    struct str name;
    uint32_t method; /* enum http_method */
    struct str path;
    struct text_list hosts;
    struct str call;
    struct route_arg *args;
    size_t n_args;
    bool args_given; /* an empty list is not the same as none */
    bool idempotent;
    bool oneway;
    struct policy policy;
    struct text_list forward_headers;
    struct text_list return_attachments;
    struct str cluster_text;
    const struct cluster *cluster;
    uint32_t forks;
    size_t max_body;
    struct exception_rule *exceptions;
    size_t n_exceptions;
    bool access_log;
    struct str summary;
    struct text_list tags;
    bool deprecated;
    /* resolved */
    const struct service *service;
    const struct method *method_def; /* NULL when the service does not list it */
    struct str method_name;
    size_t index;
};

enum http_method {
    HTTP_GET,
    HTTP_HEAD,
    HTTP_POST,
    HTTP_PUT,
    HTTP_PATCH,
    HTTP_DELETE,
    HTTP_METHODS,
};

struct listener {
    struct str address;
    uint32_t backlog;
    struct str mode_text;
    unsigned mode;
};

struct registry_settings {
    struct str name;
    struct str address;
    struct str root;
    struct str config_root;
    uint32_t discovery; /* 0 auto, 1 interface, 2 application */
    struct str chroot;
    uint32_t session_timeout_ms;
    uint32_t connect_timeout_ms;
    bool register_consumer;
    bool telnet_methods;
    uint64_t snapshot_max_age_ms;
    struct text_list provider_networks_text;
    struct network *provider_networks;
};

struct settings {
    struct ref_count refs;
    struct arena arena;
    char hash[9]; /* first 8 hex digits of SHA-256 over the effective configuration */
    const char *file;
    const struct yaml_node *root; /* for the origins that -T prints */

    uint32_t config_version;
    struct listener *listen;
    size_t n_listen;
    struct text_list admin_listen;
    struct {
        struct str workers;
        struct str pid_file;
        uint32_t max_open_files;
        uint32_t drain_timeout_ms;
        uint32_t drain_delay_ms;
        struct str state_dir;
    } process;
    struct {
        uint32_t connections;
        uint32_t requests_in_flight;
        size_t request_header;
        size_t request_body;
        size_t response_body;
        uint32_t json_depth;
        uint32_t references;
        uint32_t reference_idle_ms;
        uint32_t header_timeout_ms;
        uint32_t body_timeout_ms;
        uint32_t write_timeout_ms;
        uint32_t keepalive_timeout_ms;
        uint32_t keepalive_requests;
        size_t memory;
        bool chunked_requests;
    } limits;
    struct text_list trusted_proxies_text;
    struct network *trusted_proxies;
    struct registry_settings *registries;
    size_t n_registries;
    struct {
        struct str application;
        struct str address;
        struct str instance;
        struct text_map parameters;
    } consumer;
    struct policy defaults;
    struct service *services;
    size_t n_services;
    struct route *routes;
    size_t n_routes;
    struct {
        bool enabled;
        struct str path_prefix;
        struct str registry;
        struct text_list allow;
        struct text_list deny;
        uint32_t max_timeout_ms;
    } direct;
    struct {
        struct {
            struct str target;
            uint32_t level;  /* enum log_level */
            uint32_t format; /* 0 text, 1 json */
            uint32_t repeat_ms;
        } error;
        struct {
            struct str target;
            uint32_t format; /* enum accesslog_format */
            double sample;
            uint32_t slow_ms;
            size_t buffer;
            uint32_t flush_ms;
        } access;
    } logging;
    struct {
        bool enabled;
        bool per_provider;
        uint32_t max_series;
    } metrics;
    struct {
        uint32_t propagation; /* 0 w3c, 1 none */
        bool generate;
    } tracing;
};

enum { CONFIG_ERRORS_MAX = 20 };

struct config_error {
    unsigned line; /* 0 = the file as a whole */
    unsigned column;
    char text[400];
};

struct config_errors {
    const char *file;
    struct config_error v[CONFIG_ERRORS_MAX];
    size_t n;    /* kept */
    size_t more; /* further ones that were counted only */
};

/* NULL when there is any error; all are in `errs`, in file order. */
struct settings *settings_load(const char *file, struct config_errors *errs) NONNULL MUST_CHECK;
/* The same for a text in memory (fuzzing). */
struct settings *settings_parse(const char *file, struct str text, struct config_errors *errs)
    __attribute__((nonnull(1, 3))) MUST_CHECK;
struct settings *settings_get(struct settings *s) NONNULL;
void settings_put(struct settings *s); /* NULL is fine */

void config_error(struct config_errors *errs, unsigned line, unsigned column, const char *fmt, ...)
    PRINTF_LIKE(4, 5);
/* FILE:LINE:COLUMN: error: … */
void config_errors_print(const struct config_errors *errs, struct buf *out) NONNULL;

/* Names of the keys that differ and take effect only after a restart. */
size_t settings_restart_keys(const struct settings *a, const struct settings *b, const char **keys,
                             size_t max) NONNULL;
const struct service *settings_service(const struct settings *s, struct str name)
    __attribute__((nonnull(1)));
const struct method *service_method(const struct service *s, struct str name)
    __attribute__((nonnull(1)));
bool networks_contain(const struct network *v, size_t n, const struct sockaddr *sa)
    __attribute__((nonnull(3)));
extern const char *const http_method_names[HTTP_METHODS];
