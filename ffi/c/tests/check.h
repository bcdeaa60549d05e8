/* A few macros for the C tests: every file is a program that counts its checks and exits with 1
 * if one failed. Compiles as C99 and as C++11. */
#ifndef LK_TESTS_CHECK_H
#define LK_TESTS_CHECK_H

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lanekeeper.h"

static int checks_passed;
static int checks_failed;

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (condition) {                                                                           \
            checks_passed++;                                                                       \
        } else {                                                                                   \
            checks_failed++;                                                                       \
            printf("%s:%d: failed: %s\n", __FILE__, __LINE__, #condition);                         \
        }                                                                                          \
    } while (0)

/* Two integers are equal; prints both if not. */
#define CHECK_EQ(actual, expected)                                                                 \
    check_eq((int64_t)(actual), (int64_t)(expected), #actual, __FILE__, __LINE__)

/* A status is the expected one; prints its name if not. */
#define CHECK_STATUS(actual, expected)                                                             \
    check_status((actual), (expected), #actual, __FILE__, __LINE__)

static inline void check_eq(int64_t actual, int64_t expected, const char *text, const char *file,
                            int line)
{
    if (actual == expected) {
        checks_passed++;
        return;
    }
    checks_failed++;
    printf("%s:%d: %s is %" PRId64 ", expected %" PRId64 "\n", file, line, text, actual, expected);
}

static inline void check_status(lk_status actual, lk_status expected, const char *text,
                                const char *file, int line)
{
    if (actual == expected) {
        checks_passed++;
        return;
    }
    checks_failed++;
    printf("%s:%d: %s answered %s, expected %s\n", file, line, text, lk_status_name(actual),
           lk_status_name(expected));
}

/* To be returned from main. */
static inline int check_end(const char *name)
{
    printf("%s: %d checks passed, %d failed\n", name, checks_passed, checks_failed);
    return checks_failed == 0 && checks_passed > 0 ? 0 : 1;
}

#endif /* LK_TESTS_CHECK_H */
