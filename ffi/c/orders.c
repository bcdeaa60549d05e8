/* Ordered consumption of a real event log, in C: the program of tests/demo/orders.rs once more.
 *
 * Reads events from CSV, sends them by key to the queues of a broker in memory, and consumes them
 * in order with a pool of worker threads through lk_process_queue, while batches fail and queues
 * are taken away and given back. Ends with the verdict: out of order, lost.
 *
 * Exit status: 0 all in order and nothing lost, 1 otherwise, 2 for input or options it cannot use.
 * Build: make demo-c. Needs zlib. */
#include "orders.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef ORDERS_SAMPLE
#define ORDERS_SAMPLE "tests/data/orders.csv.gz"
#endif

typedef struct options {
    const char *file, *key, *seq;
    bool json, sample;
    orders_settings settings;
} options;

static const char usage[] =
    "Usage: orders [OPTIONS] [FILE]\n"
    "\n"
    "  FILE                CSV file with a header, plain or gzipped [default: " ORDERS_SAMPLE "]\n"
    "  --key <COLUMN>      Column whose value decides which events must stay in order\n"
    "  --seq <COLUMN>      Column with ascending numbers per key to check against\n"
    "  --queues <N>        Queues of the topic, 1 to 4096 [default: 8]\n"
    "  --workers <N>       Worker threads, 1 to 256 [default: 4]\n"
    "  --batch <N>         Messages per batch, 1 to 1024 [default: 16]\n"
    "  --fail-rate <P>     Probability that a batch fails [default: 0.02]\n"
    "  --suspend-ms <MS>   Until a failed batch is tried again, 0 to 5000 [default: 1]\n"
    "  --rebalances <N>    How often half of the queues is closed and opened again [default: 8]\n"
    "  --seed <N>          Seed of everything random [default: 1]\n"
    "  --json              Print the result as a line of JSON, last\n"
    "  --help              Print this\n";

static void refuse(const char *what, const char *value, const char *advice)
{
    fprintf(stderr, "orders: %s%s%s. %s; see --help.\n", what, value == NULL ? "" : " ",
            value == NULL ? "" : value, advice);
    exit(2);
}

static uint64_t parse_count(const char *option, const char *text, uint64_t least, uint64_t most)
{
    char *end = NULL, advice[96];
    uint64_t value;
    errno = 0;
    value = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end != '\0' || errno != 0 || value < least || value > most) {
        snprintf(advice, sizeof(advice), "%s takes a number from %" PRIu64 " to %" PRIu64, option,
                 least, most);
        refuse(option, text, advice);
    }
    return value;
}

static double parse_probability(const char *option, const char *text)
{
    char *end = NULL;
    double value = strtod(text, &end);
    if (end == text || *end != '\0' || !(value >= 0.0 && value <= 1.0))
        refuse(option, text, "A probability is a number from 0 to 1");
    return value;
}

static void set_option(options *set, const char *name, const char *value)
{
    orders_settings *settings = &set->settings;
    if (strcmp(name, "--key") == 0)
        set->key = value;
    else if (strcmp(name, "--seq") == 0)
        set->seq = value;
    else if (strcmp(name, "--queues") == 0)
        settings->queue_count = (uint32_t)parse_count(name, value, 1, 4096);
    else if (strcmp(name, "--workers") == 0)
        settings->worker_count = (uint32_t)parse_count(name, value, 1, 256);
    else if (strcmp(name, "--batch") == 0)
        settings->consume_batch = (uint32_t)parse_count(name, value, 1, 1024);
    else if (strcmp(name, "--fail-rate") == 0)
        settings->fail_rate = parse_probability(name, value);
    else if (strcmp(name, "--suspend-ms") == 0)
        settings->suspend_ms = parse_count(name, value, 0, 5000);
    else if (strcmp(name, "--rebalances") == 0)
        settings->rebalances = parse_count(name, value, 0, 100000);
    else if (strcmp(name, "--seed") == 0)
        settings->seed = parse_count(name, value, 0, UINT64_MAX);
    else if (strcmp(name, "--fault") == 0 && strcmp(value, "drop") == 0)
        settings->fault = ORDERS_DROP;
    else if (strcmp(name, "--fault") == 0 && strcmp(value, "swap") == 0)
        settings->fault = ORDERS_SWAP;
    else
        refuse("unknown option", name, "Check the spelling");
}

static options parse_options(int count, char **arguments)
{
    options set = { .settings = { .queue_count = 8, .worker_count = 4, .consume_batch = 16,
                                  .fail_rate = 0.02, .suspend_ms = 1, .rebalances = 8,
                                  .seed = 1 } };
    for (int i = 1; i < count; i++) {
        const char *argument = arguments[i];
        if (strcmp(argument, "--help") == 0 || strcmp(argument, "-h") == 0) {
            fputs(usage, stdout);
            exit(0);
        }
        if (strcmp(argument, "--json") == 0) {
            set.json = true;
        } else if (strncmp(argument, "--", 2) == 0) {
            if (i + 1 == count)
                refuse(argument, NULL, "The option takes a value");
            set_option(&set, argument, arguments[++i]);
        } else if (set.file == NULL) {
            set.file = argument;
        } else {
            refuse("one file too many:", argument, "Give one");
        }
    }
    if (set.file != NULL && set.key == NULL)
        refuse("--key is missing", NULL, "Name the key column of the file");
    if (set.file == NULL) {
        set.file = ORDERS_SAMPLE;
        if (set.key == NULL) {
            set.key = "order_id";
            set.seq = set.seq == NULL ? "seq" : set.seq;
        }
    }
    return set;
}

static void print_table(const options *set, const orders_input *input,
                        const orders_findings *found, const orders_result *result)
{
    printf("input                     %s\n", set->file);
    printf("events                    %zu\n", input->event_count);
    printf("keys                      %zu\n", input->key_count);
    printf("seconds                   %.3f\n", result->seconds);
    printf("throughput, events/s      %.0f\n", (double)found->delivered / result->seconds);
    printf("delivered, distinct       %" PRIu64 "\n", found->delivered);
    printf("redeliveries              %" PRIu64 "\n", found->redelivered);
    printf("batches                   %" PRIu64 "\n", result->batches);
    printf("batches failed            %" PRIu64 "\n", result->failed_batches);
    printf("rebalances                %" PRIu64 "\n", result->rebalances);
    printf("out of order              %" PRIu64 " (by %s)\n", found->out_of_order,
           set->seq == NULL ? "position" : set->seq);
    printf("lost                      %" PRIu64 "\n", found->lost);
    printf("foreign deliveries        %" PRIu64 "\n", result->foreign);
    printf("offsets stored early      %" PRIu64 "\n", found->stored_early);
    printf("payloads put, released    %" PRIu64 ", %" PRIu64 "\n", result->put, result->released);
    printf("\n%6s %12s %12s %12s\n", "queue", "end offset", "committed", "generations");
    for (uint32_t i = 0; i < set->settings.queue_count; i++) {
        const orders_queue_line *line = &result->queues[i];
        printf("%6" PRIu32 " %12" PRId64 " %12" PRId64 " %12" PRIu64 "\n", i, line->end_offset,
               line->committed_offset, line->generations);
    }
}

static void print_json(const options *set, const orders_input *input,
                       const orders_findings *found, const orders_result *result)
{
    printf("{\"events\":%zu,\"keys\":%zu,\"delivered\":%" PRIu64 ",\"redelivered\":%" PRIu64
           ",\"out_of_order\":%" PRIu64 ",\"lost\":%" PRIu64 ",\"foreign\":%" PRIu64
           ",\"stored_early\":%" PRIu64 ",\"seconds\":%.6f,\"events_per_second\":%.1f"
           ",\"batches\":%" PRIu64 ",\"failed_batches\":%" PRIu64 ",\"rebalances\":%" PRIu64
           ",\"put\":%" PRIu64 ",\"released\":%" PRIu64 ",\"queues\":[",
           input->event_count, input->key_count, found->delivered, found->redelivered,
           found->out_of_order, found->lost, result->foreign, found->stored_early,
           result->seconds, (double)found->delivered / result->seconds, result->batches,
           result->failed_batches, result->rebalances, result->put, result->released);
    for (uint32_t i = 0; i < set->settings.queue_count; i++) {
        const orders_queue_line *line = &result->queues[i];
        printf("%s{\"queue\":%" PRIu32 ",\"end\":%" PRId64 ",\"committed\":%" PRId64
               ",\"generations\":%" PRIu64 "}",
               i == 0 ? "" : ",", i, line->end_offset, line->committed_offset,
               line->generations);
    }
    puts("]}");
}

static bool is_clean(const options *set, const orders_findings *found,
                     const orders_result *result)
{
    bool clean = !result->stalled && result->put == result->released &&
                 found->out_of_order + found->lost + found->stored_early + result->foreign == 0;
    for (uint32_t i = 0; i < set->settings.queue_count; i++)
        clean &= result->queues[i].end_offset == result->queues[i].committed_offset;
    if (result->stalled)
        fputs("orders: nothing was delivered for long, and not all is consumed\n", stderr);
    if (found->first_disorder_line != 0)
        fprintf(stderr, "orders: out of order first at line %" PRIu64 "\n",
                found->first_disorder_line);
    if (found->lost > 0)
        fprintf(stderr, "orders: %" PRIu64 " events were never delivered\n", found->lost);
    if (result->put != result->released)
        fputs("orders: the payloads released are not those that were put\n", stderr);
    return clean;
}

int main(int count, char **arguments)
{
    options set = parse_options(count, arguments);
    orders_input input;
    orders_ledger *ledger;
    orders_result result;
    orders_findings found;
    bool clean;

    if (!lk_abi_matches()) {
        fprintf(stderr, "orders: built for another liblanekeeper than %s\n", lk_version_string());
        return 1;
    }
    if (!orders_input_read(&input, set.file, set.key, set.seq))
        return 2;
    ledger = orders_ledger_new(&input, set.settings.queue_count);
    result = orders_run(&input, ledger, &set.settings);
    found = orders_ledger_findings(ledger);
    print_table(&set, &input, &found, &result);
    if (set.json)
        print_json(&set, &input, &found, &result);
    clean = is_clean(&set, &found, &result);
    orders_ledger_free(ledger);
    orders_input_free(&input);
    free(result.queues);
    return clean ? 0 : 1;
}
