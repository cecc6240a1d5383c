#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <check.h>

#include "base/log.h"

static char path[] = "/tmp/base_log.XXXXXX";
static char content[1 << 20];
static struct err e;

static void open_log(enum log_level level, bool json, uint32_t repeat_ms)
{
    const struct log_opts o = {.file = path, .level = level, .json = json, .repeat_ms = repeat_ms};
    int fd = mkstemp(path);

    ck_assert_int_ge(fd, 0);
    close(fd);
    ck_assert_msg(log_open(&o, &e), "%s", e.text);
}

static const char *written(void)
{
    FILE *in = fopen(path, "re");
    size_t n = 0;

    ck_assert_ptr_nonnull(in);
    n = fread(content, 1, sizeof(content) - 1, in);
    content[n] = '\0';
    fclose(in);
    return content;
}

static size_t lines(const char *text)
{
    size_t n = 0;

    for (; *text != '\0'; text++)
        n += *text == '\n' ? 1U : 0U;
    return n;
}

START_TEST(plain_lines)
{
    open_log(LOG_NOTICE, false, 0);
    log_info("registry", "not shown");
    log_warn("registry", "reference %s: %d providers", "a.B", 3);
    ck_assert_uint_eq(lines(written()), 1);
    ck_assert_ptr_nonnull(strstr(content, "Z warn registry: reference a.B: 3 providers\n"));
    log_set_level(LOG_DEBUG);
    log_debug("x", "shown");
    ck_assert_ptr_nonnull(strstr(written(), "Z debug x: shown\n"));
    unlink(path);
}
END_TEST

START_TEST(nobody_forges_lines)
{
    open_log(LOG_NOTICE, false, 0);
    log_warn("x", "%s", "a\r\n2026 error y: forged\x1b[2J\x7f\t");
    ck_assert_uint_eq(lines(written()), 1);
    for (const char *p = content; *p != '\n'; p++)
        ck_assert(*p >= 0x20 && *p != 0x7f);
    unlink(path);
}
END_TEST

START_TEST(json_lines)
{
    open_log(LOG_NOTICE, true, 0);
    log_error("x", "%s", "say \"a\\b\"");
    ck_assert_ptr_nonnull(strstr(written(), "\"level\":\"error\",\"module\":\"x\",\"text\":\"say "
                                            "\\\"a\\\\b\\\"\"}\n"));
    ck_assert_ptr_eq(strchr(content, '{'), content);
    unlink(path);
}
END_TEST

/* A text of any length and kind is one whole line. */
START_TEST(long_lines_stay_whole)
{
    static char text[5000];

    for (int json = 0; json < 2; json++) {
        strcpy(path + strlen(path) - 6, "XXXXXX");
        open_log(LOG_NOTICE, json != 0, 0);
        for (size_t n = 1800; n < 2200; n++) {
            memset(text, '"', n);
            text[n] = '\0';
            log_warn("module", "%s", text);
        }
        ck_assert_uint_eq(lines(written()), 400);
        if (json != 0) {
            for (const char *p = content; *p != '\0'; p = strchr(p, '\n') + 1) {
                const char *end = strchr(p, '\n');

                ck_assert_msg(strncmp(end - 4, "\\\"\"}", 4) == 0, "cut: %.60s", end - 60);
            }
        }
        unlink(path);
    }
}
END_TEST

static void repeat(void)
{
    log_warn("x", "the same");
}

START_TEST(a_site_that_repeats_itself_is_held_back)
{
    open_log(LOG_NOTICE, false, 60);
    for (int i = 0; i < 5; i++)
        repeat();
    log_warn("x", "another place");
    ck_assert_uint_eq(lines(written()), 2);
    usleep(80000);
    repeat();
    ck_assert_uint_eq(lines(written()), 3);
    ck_assert_ptr_nonnull(strstr(content, "the same (4 like it left out)\n"));
    unlink(path);
}
END_TEST

START_TEST(the_ring_has_the_newest)
{
    struct buf b;

    open_log(LOG_DEBUG, false, 0);
    for (int i = 0; i < LOG_RING_LINES + 50; i++) {
        if (i % 2 == 0)
            log_info("x", "number %d.", i);
        else
            log_error("x", "number %d.", i);
    }
    buf_init(&b, 1 << 20);
    log_ring(LOG_WARN, 2, &b);
    buf_add_u8(&b, '\0');
    ck_assert_uint_eq(lines((char *)b.data), 2);
    ck_assert_ptr_nonnull(strstr((char *)b.data, "number 1047."));
    ck_assert_ptr_nonnull(strstr((char *)b.data, "number 1049."));
    buf_truncate(&b, 0);
    log_ring(LOG_DEBUG, 5000, &b);
    buf_add_u8(&b, '\0');
    ck_assert_uint_eq(lines((char *)b.data), LOG_RING_LINES);
    ck_assert_ptr_null(strstr((char *)b.data, "number 49."));
    ck_assert_ptr_nonnull(strstr((char *)b.data, "number 50."));
    buf_free(&b);
    unlink(path);
}
END_TEST

START_TEST(rotation)
{
    char moved[64];

    open_log(LOG_NOTICE, false, 0);
    log_warn("x", "before");
    snprintf(moved, sizeof(moved), "%s.1", path);
    ck_assert_int_eq(rename(path, moved), 0);
    log_warn("x", "still the old file");
    log_reopen();
    log_warn("x", "after");
    ck_assert_uint_eq(lines(written()), 1);
    ck_assert_ptr_nonnull(strstr(content, "after"));
    unlink(path);
    unlink(moved);
}
END_TEST

START_TEST(a_bad_target_leaves_the_old_one)
{
    const struct log_opts bad = {.file = "/nonexistent/x", .level = LOG_DEBUG};

    open_log(LOG_NOTICE, false, 0);
    ck_assert(!log_open(&bad, &e));
    ck_assert_ptr_nonnull(strstr(e.text, "/nonexistent/x"));
    log_warn("x", "still here");
    ck_assert_uint_eq(lines(written()), 1);
    unlink(path);
}
END_TEST

START_TEST(a_full_pipe_is_not_waited_for)
{
    const struct log_opts to_stderr = {.level = LOG_NOTICE};
    int fd[2];
    int keep = dup(STDERR_FILENO);
    uint64_t lost = 0;

    ck_assert_int_eq(pipe2(fd, O_NONBLOCK | O_CLOEXEC), 0);
    ck_assert_int_eq(dup2(fd[1], STDERR_FILENO), STDERR_FILENO);
    ck_assert(log_open(&to_stderr, &e));
    for (int i = 0; i < 5000; i++)
        log_warn("x", "a line that nobody reads, %d", i);
    lost = log_dropped();
    dup2(keep, STDERR_FILENO);
    ck_assert_uint_gt(lost, 0);
    ck_assert_uint_lt(lost, 5000);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("base_log");
    TCase *t = tcase_create("base_log");
    SRunner *r = srunner_create(s);
    int failed = 0;

    tcase_add_test(t, plain_lines);
    tcase_add_test(t, nobody_forges_lines);
    tcase_add_test(t, json_lines);
    tcase_add_test(t, long_lines_stay_whole);
    tcase_add_test(t, a_site_that_repeats_itself_is_held_back);
    tcase_add_test(t, the_ring_has_the_newest);
    tcase_add_test(t, rotation);
    tcase_add_test(t, a_bad_target_leaves_the_old_one);
    tcase_add_test(t, a_full_pipe_is_not_waited_for);
    suite_add_tcase(s, t);
    srunner_run_all(r, CK_ENV);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
