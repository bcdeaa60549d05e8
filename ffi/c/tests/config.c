/* The configuration struct, error objects, and versions (C1, C2, C6). */
#include <stddef.h>

#include "host.h"

typedef struct newer_config {
    lk_process_queue_config known;
    uint64_t later[2];
} newer_config;

static lk_status try_new(const void *config, lk_error **error)
{
    lk_process_queue *queue = NULL;
    lk_status status = lk_process_queue_new((const lk_process_queue_config *)config, &queue, error,
                                            NULL, NULL, NULL);
    CHECK((status == LK_OK) == (queue != NULL));
    lk_process_queue_free(queue);
    return status;
}

static void all_zero_means_defaults(void)
{
    lk_process_queue_config zero;
    lk_process_queue_config got;
    lk_process_queue *queue = NULL;
    memset(&zero, 0, sizeof(zero));
    CHECK_STATUS(lk_process_queue_new(&zero, &queue, NULL, NULL, NULL, NULL), LK_OK);
    memset(&got, 0xff, sizeof(got));
    CHECK_STATUS(lk_process_queue_get_config(queue, &got), LK_OK);
    CHECK_EQ(got.struct_size, sizeof(got));
    CHECK_EQ(got.mode, LK_MODE_ORDERLY);
    CHECK_EQ(got.start_offset, 0);
    CHECK_EQ(got.generation, 0);
    CHECK_EQ(got.hand_over_ms, 20000);
    CHECK_EQ(got.outstanding_max, 1 << 20);
    CHECK_EQ(got.consumers_max, 64);
    lk_process_queue_free(queue);
}

static void every_field_arrives(void)
{
    lk_process_queue_config config = LK_PROCESS_QUEUE_CONFIG_INIT;
    lk_process_queue_config got;
    lk_process_queue *queue = NULL;
    uint64_t generation = 0;
    config.mode = LK_MODE_CONCURRENT;
    config.start_offset = 500;
    config.generation = UINT64_C(0xfedcba9876543210);
    config.hand_over_ms = 7;
    config.outstanding_max = 100;
    config.consumers_max = 3;
    CHECK_STATUS(lk_process_queue_new(&config, &queue, NULL, NULL, NULL, NULL), LK_OK);
    CHECK_STATUS(lk_process_queue_get_config(queue, &got), LK_OK);
    CHECK(memcmp(&got, &config, sizeof(got)) == 0);
    CHECK_STATUS(lk_process_queue_generation(queue, &generation), LK_OK);
    CHECK(generation == config.generation);
    CHECK_EQ(host_safe_offset(queue), 500);
    lk_process_queue_free(queue);
}

static void other_sizes(void)
{
    lk_process_queue_config config = LK_PROCESS_QUEUE_CONFIG_INIT;
    lk_process_queue_config got;
    lk_process_queue *queue = NULL;
    newer_config newer;

    /* Older: what lies beyond its size is not read. */
    config.start_offset = 5;
    config.outstanding_max = UINT32_MAX; /* would be refused */
    config.struct_size = (uint32_t)offsetof(lk_process_queue_config, generation);
    CHECK_STATUS(lk_process_queue_new(&config, &queue, NULL, NULL, NULL, NULL), LK_OK);
    CHECK_STATUS(lk_process_queue_get_config(queue, &got), LK_OK);
    CHECK_EQ(got.start_offset, 5);
    CHECK_EQ(got.outstanding_max, 1 << 20);
    lk_process_queue_free(queue);
    config.struct_size = 4;
    CHECK_STATUS(try_new(&config, NULL), LK_OK);

    /* Newer: fine if nothing unknown is set. */
    memset(&newer, 0, sizeof(newer));
    newer.known.struct_size = (uint32_t)sizeof(newer);
    CHECK_STATUS(try_new(&newer, NULL), LK_OK);
    newer.later[1] = UINT64_C(1) << 56;
    CHECK_STATUS(try_new(&newer, NULL), LK_ERR_ABI_MISMATCH);
    newer.known.struct_size = (uint32_t)sizeof(newer) - 8;
    CHECK_STATUS(try_new(&newer, NULL), LK_OK);

    /* Sizes no version has. */
    newer.known.struct_size = 3;
    CHECK_STATUS(try_new(&newer, NULL), LK_ERR_ABI_MISMATCH);
    newer.known.struct_size = 13;
    CHECK_STATUS(try_new(&newer, NULL), LK_ERR_ABI_MISMATCH);
    newer.known.struct_size = UINT32_MAX;
    CHECK_STATUS(try_new(&newer, NULL), LK_ERR_ABI_MISMATCH);
}

static void refused(lk_process_queue_config config, lk_status expected, const char *word)
{
    lk_error *error = NULL;
    const char *text = NULL;
    size_t len = 0;
    CHECK_STATUS(try_new(&config, NULL), expected);
    CHECK_STATUS(try_new(&config, &error), expected);
    CHECK(error != NULL);
    CHECK_STATUS(lk_error_status(error), expected);
    CHECK_STATUS(lk_error_message(error, &text, &len), LK_OK);
    CHECK(text != NULL && strlen(text) == len && strstr(text, word) != NULL);
    lk_error_free(error);
}

static void bad_values(void)
{
    static const int32_t modes[] = {-1, 2, 77, INT32_MAX, INT32_MIN};
    lk_process_queue_config config = LK_PROCESS_QUEUE_CONFIG_INIT;
    lk_error *error = NULL;
    size_t i;
    for (i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
        config.mode = modes[i];
        refused(config, LK_ERR_INVALID_ARG, "mode");
    }
    config.mode = LK_MODE_ORDERLY;
    config.start_offset = -1;
    refused(config, LK_ERR_INVALID_ARG, "start_offset");
    config.start_offset = 0;
    config.outstanding_max = UINT32_MAX;
    refused(config, LK_ERR_INVALID_ARG, "outstanding_max");
    config.outstanding_max = 0;
    config.consumers_max = UINT32_MAX;
    refused(config, LK_ERR_INVALID_ARG, "consumers_max");
    config.consumers_max = 0;
    config.struct_size = 1;
    refused(config, LK_ERR_ABI_MISMATCH, "struct_size");
    /* No error object with success. */
    config.struct_size = (uint32_t)sizeof(config);
    CHECK_STATUS(try_new(&config, &error), LK_OK);
    CHECK(error == NULL);
    CHECK_STATUS(lk_error_status(NULL), LK_OK);
    lk_error_free(NULL);
}

static void failed_new_leaves_the_user_data(void)
{
    host h;
    lk_process_queue_config config = LK_PROCESS_QUEUE_CONFIG_INIT;
    lk_process_queue *queue = NULL;
    memset(&h, 0, sizeof(h));
    config.mode = 9;
    CHECK_STATUS(lk_process_queue_new(&config, &queue, NULL, host_release, host_data_free, &h),
                 LK_ERR_INVALID_ARG);
    CHECK_EQ(h.data_freed, 0);
}

static void versions(void)
{
    char text[64];
    CHECK_EQ(lk_version_number(), LK_VERSION_NUMBER);
    CHECK_EQ(LK_VERSION_NUMBER,
             LK_VERSION_MAJOR * 0x1000000 + LK_VERSION_MINOR * 0x10000 + LK_VERSION_PATCH * 0x100);
    CHECK(strcmp(lk_version_string(), LK_VERSION_STRING) == 0);
    snprintf(text, sizeof(text), "%d.%d.%d", LK_VERSION_MAJOR, LK_VERSION_MINOR, LK_VERSION_PATCH);
    CHECK(strcmp(lk_version_string(), text) == 0);
    CHECK_EQ(lk_abi_version(), LK_ABI_VERSION);
    CHECK(lk_abi_matches());
    CHECK(lk_runtime_at_least(LK_VERSION_MAJOR, LK_VERSION_MINOR));
    CHECK(lk_runtime_at_least(0, 0));
    CHECK(!lk_runtime_at_least(LK_VERSION_MAJOR, LK_VERSION_MINOR + 1));
    CHECK(!lk_runtime_at_least(UINT32_MAX, 0));
    CHECK(strcmp(lk_status_name(LK_CLOSED), "LK_CLOSED") == 0);
    CHECK(strcmp(lk_status_name(12345), "LK_UNKNOWN_STATUS") == 0);
}

int main(void)
{
    all_zero_means_defaults();
    every_field_arrives();
    other_sizes();
    bad_values();
    failed_new_leaves_the_user_data();
    versions();
    return check_end("config");
}
