/* Who consumes which queues: names, routes, members, strategies, allocators, shares (A1 to A5). */
#include "check.h"

static lk_str text(const char *bytes)
{
    lk_str result;
    result.data = bytes;
    result.len = strlen(bytes);
    return result;
}

static lk_message_queue queue_of(const char *broker_name, int32_t queue_id)
{
    lk_message_queue queue;
    queue.topic = text("orders");
    queue.broker_name = text(broker_name);
    queue.queue_id = queue_id;
    queue.reserved = 0;
    return queue;
}

static int same(lk_str view, const char *bytes)
{
    return view.len == strlen(bytes) && memcmp(view.data, bytes, view.len) == 0;
}

static lk_route *route_of(const lk_message_queue *queues, size_t count, const lk_str *rooms)
{
    lk_route *route = NULL;
    CHECK_STATUS(lk_route_new(queues, count, rooms, &route, NULL), LK_OK);
    return route;
}

static lk_members *members_of(const lk_str *clients, size_t count, const lk_str *rooms)
{
    lk_members *members = NULL;
    CHECK_STATUS(lk_members_new(clients, count, rooms, &members, NULL), LK_OK);
    return members;
}

static lk_strategy *strategy_of(const lk_strategy_config *config)
{
    lk_strategy *strategy = NULL;
    CHECK_STATUS(lk_strategy_new(config, &strategy, NULL), LK_OK);
    return strategy;
}

/* Consumes the three handles. */
static lk_allocator *allocator_of(lk_strategy *strategy, lk_route *route, lk_members *members)
{
    lk_allocator *allocator = NULL;
    CHECK_STATUS(lk_allocator_new(strategy, route, members, &allocator, NULL), LK_OK);
    lk_strategy_free(strategy);
    lk_route_free(route);
    lk_members_free(members);
    return allocator;
}

/* Checks the indexes of one client against a text such as "0 3 6". */
static void check_share(const lk_allocator *allocator, const char *client, const char *expected)
{
    lk_shares *shares = NULL;
    lk_client_share share;
    char found[256] = "";
    size_t used = 0;
    size_t i;
    size_t count = 0;
    CHECK_STATUS(lk_allocator_share(allocator, text(client), &shares, NULL), LK_OK);
    CHECK_STATUS(lk_shares_count(shares, &count), LK_OK);
    CHECK_EQ(count, 1);
    CHECK_STATUS(lk_shares_client(shares, 0, &share), LK_OK);
    CHECK(same(share.client, client));
    CHECK_STATUS(share.status, LK_OK);
    for (i = 0; i < share.queue_count && used + 12 < sizeof(found); i++) {
        used += (size_t)snprintf(found + used, sizeof(found) - used, "%s%u", i == 0 ? "" : " ",
                                 (unsigned)share.indexes[i]);
    }
    if (strcmp(found, expected) != 0) {
        printf("share of %s is \"%s\", expected \"%s\"\n", client, found, expected);
    }
    CHECK(strcmp(found, expected) == 0);
    lk_shares_free(shares);
}

static const char *const names[] = {"a", "b", "c"};

/* 7 queues of two brokers and 3 clients, in no order; rooms r1 and r2, clients in r1 and r3. */
static lk_allocator *seven_and_three(const lk_strategy_config *config)
{
    lk_message_queue queues[8];
    lk_str queue_rooms[8];
    lk_str clients[3];
    lk_str client_rooms[3];
    int32_t i;
    for (i = 0; i < 7; i++) {
        queues[i] = queue_of(i < 4 ? "r2@y" : "r1@x", 6 - i);
        queue_rooms[i] = text(i < 4 ? "r2" : "r1");
    }
    queues[7] = queues[0];
    queue_rooms[7] = queue_rooms[0];
    for (i = 0; i < 3; i++) {
        clients[i] = text(names[2 - i]);
        client_rooms[i] = text(i == 0 ? "r3" : "r1");
    }
    return allocator_of(strategy_of(config), route_of(queues, 8, queue_rooms),
                        members_of(clients, 3, client_rooms));
}

/* Field report 51: the remainder goes where Java puts it. */
static void every_strategy(void)
{
    static const struct {
        int32_t kind;
        int32_t inner;
        const char *name;
        const char *shares[3];
    } cases[] = {
        {LK_STRATEGY_AVG, 0, "AVG", {"0 1 2", "3 4", "5 6"}},
        {LK_STRATEGY_AVG_BY_CIRCLE, 0, "AVG_BY_CIRCLE", {"0 3 6", "1 4", "2 5"}},
        {LK_STRATEGY_CONSISTENT_HASH, 0, "CONSISTENT_HASH", {NULL, NULL, NULL}},
        {LK_STRATEGY_MACHINE_ROOM, 0, "MACHINE_ROOM", {"3 6", "4", "5"}},
        {LK_STRATEGY_MACHINE_ROOM_NEARBY,
         LK_STRATEGY_AVG,
         "MACHINE_ROOM_NEARBY-AVG",
         {"0 1 3 4", "2 5", "6"}},
        {LK_STRATEGY_STICKY, 0, "STICKY", {"0 1 2", "3 4", "5 6"}},
        {LK_STRATEGY_BOUNDED_LOAD, 0, "BOUNDED_LOAD", {NULL, NULL, NULL}},
    };
    size_t i;
    size_t client;
    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        lk_strategy_config config = LK_STRATEGY_CONFIG_INIT;
        lk_str rooms[1];
        lk_strategy *strategy;
        lk_allocator *allocator;
        lk_shares *shares = NULL;
        lk_str name;
        size_t total = 0;
        rooms[0] = text("r2");
        config.kind = cases[i].kind;
        config.inner = cases[i].inner;
        config.rooms = rooms;
        config.room_count = 1;
        strategy = strategy_of(&config);
        CHECK_STATUS(lk_strategy_name(strategy, &name), LK_OK);
        CHECK(same(name, cases[i].name));
        lk_strategy_free(strategy);
        allocator = seven_and_three(&config);
        CHECK_STATUS(lk_allocator_shares(allocator, &shares, NULL), LK_OK);
        for (client = 0; client < 3; client++) {
            lk_client_share share;
            CHECK_STATUS(lk_shares_client(shares, client, &share), LK_OK);
            CHECK(same(share.client, names[client]));
            total += share.queue_count;
            if (cases[i].shares[client] != NULL) {
                check_share(allocator, names[client], cases[i].shares[client]);
            }
        }
        CHECK_EQ(total, cases[i].kind == LK_STRATEGY_MACHINE_ROOM ? 4 : 7);
        lk_shares_free(shares);
        lk_allocator_free(allocator);
    }
}

static void lists_in_any_order(void)
{
    lk_message_queue queues[4];
    lk_message_queue found;
    lk_str clients[3];
    lk_str view;
    lk_route *route;
    lk_members *members;
    size_t count = 0;
    queues[0] = queue_of("\xee\x80\x80", 0); /* U+E000: after what lies beyond U+FFFF */
    queues[1] = queue_of("\xf0\x9f\x98\x80", 1);
    queues[2] = queue_of("b", 10);
    queues[3] = queues[1];
    route = route_of(queues, 4, NULL);
    CHECK_STATUS(lk_route_count(route, &count), LK_OK);
    CHECK_EQ(count, 3);
    CHECK_STATUS(lk_route_queue(route, 1, &found), LK_OK);
    CHECK(same(found.topic, "orders") && same(found.broker_name, "\xf0\x9f\x98\x80"));
    CHECK_EQ(found.queue_id, 1);
    CHECK_STATUS(lk_route_queue(route, 3, &found), LK_ERR_INVALID_ARG);
    lk_route_free(route);

    clients[0] = text("b");
    clients[1] = text("a");
    clients[2] = text("b");
    members = members_of(clients, 3, NULL);
    CHECK_STATUS(lk_members_count(members, &count), LK_OK);
    CHECK_EQ(count, 3);
    CHECK_STATUS(lk_members_client(members, 0, &view), LK_OK);
    CHECK(same(view, "a"));
    CHECK_STATUS(lk_members_client(members, 3, &view), LK_ERR_INVALID_ARG);
    lk_members_free(members);
}

static void bare_names(void)
{
    lk_message_queue a = queue_of("broker-a", 2147483647);
    lk_message_queue b = queue_of("broker-a", -1);
    const char *expected = "MessageQueue [topic=orders, brokerName=broker-a, queueId=-1]";
    char shown[80];
    size_t len = 0;
    int32_t number = 0;
    CHECK_STATUS(lk_message_queue_compare(&a, &b, &number), LK_OK);
    CHECK_EQ(number, INT32_MIN); /* the difference of the ids wraps, as in Java */
    b.broker_name = text("broker-b");
    CHECK_STATUS(lk_message_queue_compare(&a, &b, &number), LK_OK);
    CHECK_EQ(number, -1);
    b.broker_name = text("broker-a");
    CHECK_STATUS(lk_message_queue_to_string(&b, shown, sizeof(shown), &len), LK_OK);
    CHECK(len == strlen(expected) && memcmp(shown, expected, len) == 0);
    CHECK_STATUS(lk_message_queue_to_string(&b, shown, len - 1, &len), LK_LIMIT);
    CHECK_EQ(len, strlen(expected));
    CHECK_STATUS(lk_message_queue_to_string(&b, NULL, 0, &len), LK_LIMIT);
    b.topic = text("TopicTest");
    b.broker_name = text("broker-b");
    b.queue_id = 0;
    CHECK_STATUS(lk_message_queue_hash_code(&b, &number), LK_OK);
    CHECK_EQ(number, -222121330);
    b.topic = text("\xff");
    CHECK_STATUS(lk_message_queue_hash_code(&b, &number), LK_ERR_INVALID_ARG);
    b.topic.data = NULL;
    CHECK_STATUS(lk_message_queue_hash_code(&b, &number), LK_ERR_NULL_ARG);
    b.topic.data = "a\0b";
    b.topic.len = 3;
    CHECK_STATUS(lk_message_queue_hash_code(&b, &number), LK_ERR_INVALID_ARG);
}

/* Field report 55, and the answers that are no empty share. */
static void who_has_no_share(void)
{
    lk_strategy_config config = LK_STRATEGY_CONFIG_INIT;
    lk_message_queue queue = queue_of("x", 0);
    lk_str clients[3];
    lk_shares *shares = NULL;
    lk_client_share share;
    lk_error *error = NULL;
    lk_allocator *allocator;
    lk_route *none;
    lk_members *nobody;
    const char *why = NULL;
    size_t len = 0;
    clients[0] = text("twice");
    clients[1] = text("once");
    clients[2] = text("twice");
    allocator = allocator_of(strategy_of(&config), route_of(&queue, 1, NULL),
                             members_of(clients, 3, NULL));
    check_share(allocator, "once", "0");
    CHECK_STATUS(lk_allocator_share(allocator, text("twice"), &shares, &error),
                 LK_DUPLICATE_CLIENT);
    CHECK_STATUS(lk_error_message(error, &why, &len), LK_OK);
    CHECK(strstr(why, "several clients") != NULL);
    CHECK_STATUS(lk_error_status(error), LK_DUPLICATE_CLIENT);
    lk_error_free(error);
    CHECK_STATUS(lk_allocator_share(allocator, text("never"), &shares, NULL), LK_NOT_MEMBER);
    CHECK_STATUS(lk_allocator_share(allocator, text(""), &shares, NULL), LK_ERR_INVALID_ARG);
    CHECK_STATUS(lk_allocator_share(allocator, text("\xff"), &shares, NULL), LK_ERR_INVALID_ARG);
    CHECK(shares == NULL);

    CHECK_STATUS(lk_allocator_shares(allocator, &shares, NULL), LK_OK);
    CHECK_STATUS(lk_shares_count(shares, &len), LK_OK);
    CHECK_EQ(len, 3);
    CHECK_STATUS(lk_shares_client(shares, 2, &share), LK_OK);
    CHECK_STATUS(share.status, LK_DUPLICATE_CLIENT);
    CHECK_EQ(share.queue_count, 0);
    CHECK_STATUS(lk_shares_queue(shares, 2, 0, &queue), LK_ERR_INVALID_ARG);
    CHECK_STATUS(lk_shares_client(shares, 3, &share), LK_ERR_INVALID_ARG);
    lk_shares_free(shares);

    none = route_of(NULL, 0, NULL);
    nobody = members_of(NULL, 0, NULL);
    CHECK_STATUS(lk_allocator_set_route(allocator, none, NULL), LK_OK);
    CHECK_STATUS(lk_allocator_share(allocator, text("once"), &shares, NULL), LK_EMPTY);
    CHECK_STATUS(lk_allocator_set_members(allocator, nobody, NULL), LK_OK);
    CHECK_STATUS(lk_allocator_shares(allocator, &shares, NULL), LK_EMPTY);
    lk_route_free(none);
    lk_members_free(nobody);
    lk_allocator_free(allocator);
}

static void sticky_and_config_read_their_lists(void)
{
    lk_strategy_config config = LK_STRATEGY_CONFIG_INIT;
    lk_message_queue queues[3];
    lk_message_queue found;
    lk_str owners[3];
    lk_str clients[2];
    lk_shares *shares = NULL;
    lk_strategy *strategy;
    lk_allocator *allocator;
    int32_t i;
    for (i = 0; i < 3; i++) {
        queues[i] = queue_of("x", i);
        owners[i] = text(i == 0 ? "b" : "a");
    }
    clients[0] = text("a");
    clients[1] = text("b");
    config.kind = LK_STRATEGY_STICKY;
    config.queues = queues;
    config.owners = owners;
    config.queue_count = 3;
    allocator = allocator_of(strategy_of(&config), route_of(queues, 3, NULL),
                             members_of(clients, 2, NULL));
    check_share(allocator, "a", "1 2");
    check_share(allocator, "b", "0");

    /* Another strategy, in place: whoever asks, in the order of the list. */
    config.kind = LK_STRATEGY_CONFIG;
    queues[0] = queue_of("z", 7);
    config.queue_count = 2;
    strategy = strategy_of(&config);
    CHECK_STATUS(lk_allocator_set_strategy(allocator, strategy, NULL), LK_OK);
    lk_strategy_free(strategy);
    check_share(allocator, "stranger", "0 1");
    CHECK_STATUS(lk_allocator_share(allocator, text("a"), &shares, NULL), LK_OK);
    CHECK_STATUS(lk_shares_queue(shares, 0, 0, &found), LK_OK);
    CHECK(same(found.broker_name, "z"));
    CHECK_EQ(found.queue_id, 7);
    lk_allocator_free(allocator);
    CHECK_STATUS(lk_shares_queue(shares, 0, 1, &found), LK_OK); /* outlives the allocator */
    CHECK(same(found.broker_name, "x"));
    lk_shares_free(shares);
}

typedef struct hash_host {
    uint32_t calls;
    uint32_t freed;
} hash_host;

static int64_t by_length(void *user_data, const char *bytes, size_t len)
{
    (void)bytes;
    ((hash_host *)user_data)->calls++;
    return (int64_t)len;
}

static void hash_host_free(void *user_data)
{
    ((hash_host *)user_data)->freed++;
}

static void the_hosts_hash(void)
{
    lk_strategy_config config = LK_STRATEGY_CONFIG_INIT;
    lk_strategy *strategy = NULL;
    lk_allocator *allocator;
    hash_host host = {0, 0};
    config.kind = LK_STRATEGY_BOUNDED_LOAD;
    config.virtual_nodes = 5;
    config.hash = by_length;
    config.hash_user_data = &host;
    config.hash_user_data_free = hash_host_free;
    config.load_percent = 99;
    CHECK_STATUS(lk_strategy_new(&config, &strategy, NULL), LK_ERR_INVALID_ARG);
    CHECK_EQ(host.freed, 0); /* a refused one stays the caller's */
    config.kind = LK_STRATEGY_CONSISTENT_HASH;
    allocator = seven_and_three(&config);
    CHECK_EQ(host.calls, 7 + 3 * 5);
    /* All points in one place: the last of the sorted list has it, and so everything. */
    check_share(allocator, "c", "0 1 2 3 4 5 6");
    check_share(allocator, "a", "");
    CHECK_EQ(host.calls, 7 + 3 * 5);
    CHECK_EQ(host.freed, 0);
    lk_allocator_free(allocator);
    CHECK_EQ(host.freed, 1);
}

static void refused(const lk_strategy_config *config, lk_status expected, const char *word)
{
    lk_error *error = NULL;
    lk_strategy *strategy = NULL;
    const char *why = NULL;
    size_t len = 0;
    CHECK_STATUS(lk_strategy_new(config, &strategy, &error), expected);
    CHECK(strategy == NULL);
    CHECK_STATUS(lk_error_message(error, &why, &len), LK_OK);
    CHECK(why != NULL && strstr(why, word) != NULL);
    lk_error_free(error);
}

/* Field report 74. */
static void bad_values(void)
{
    static const int32_t kinds[] = {-1, 8, 77, INT32_MAX, INT32_MIN};
    lk_strategy_config config = LK_STRATEGY_CONFIG_INIT;
    lk_message_queue queue = queue_of("x", -1);
    lk_str crooked;
    lk_error *error = NULL;
    lk_route *route = NULL;
    lk_members *members = NULL;
    lk_strategy *strategy = NULL;
    const char *why = NULL;
    size_t len = 0;
    size_t i;
    for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        config.kind = kinds[i];
        refused(&config, LK_ERR_INVALID_ARG, "kind");
        config.kind = LK_STRATEGY_MACHINE_ROOM_NEARBY;
        config.inner = kinds[i];
        refused(&config, LK_ERR_INVALID_ARG, "inner");
    }
    config.inner = LK_STRATEGY_MACHINE_ROOM_NEARBY;
    refused(&config, LK_ERR_INVALID_ARG, "inner");
    config.inner = LK_STRATEGY_CONFIG;
    refused(&config, LK_ERR_INVALID_ARG, "inner");
    config.kind = LK_STRATEGY_BOUNDED_LOAD;
    config.load_percent = 99;
    refused(&config, LK_ERR_INVALID_ARG, "load_percent");
    config.kind = LK_STRATEGY_CONFIG;
    config.queues = &queue;
    config.queue_count = 1;
    refused(&config, LK_ERR_INVALID_ARG, "queue id -1");
    config.queues = NULL;
    CHECK_STATUS(lk_strategy_new(&config, &strategy, NULL), LK_ERR_NULL_ARG);
    config.struct_size = 5;
    refused(&config, LK_ERR_ABI_MISMATCH, "struct_size");
    memset(&config, 0, sizeof(config));
    CHECK_STATUS(lk_strategy_new(&config, &strategy, NULL), LK_OK);
    lk_strategy_free(strategy);

    CHECK_STATUS(lk_route_new(&queue, 1, NULL, &route, &error), LK_ERR_INVALID_ARG);
    CHECK_STATUS(lk_error_message(error, &why, &len), LK_OK);
    CHECK(strstr(why, "queues[0]: queue id -1 is negative") != NULL);
    lk_error_free(error);
    crooked = text("\xc3");
    CHECK_STATUS(lk_members_new(&crooked, 1, NULL, &members, &error), LK_ERR_INVALID_ARG);
    CHECK_STATUS(lk_error_message(error, &why, &len), LK_OK);
    CHECK(strstr(why, "clients[0]") != NULL);
    lk_error_free(error);
    CHECK(route == NULL && members == NULL);
}

/* Field report 54: a room that is not known is told, not taken for a room. */
static void unknown_rooms(void)
{
    lk_strategy_config config = LK_STRATEGY_CONFIG_INIT;
    lk_message_queue queue = queue_of("x", 0);
    lk_str client = text("a");
    lk_str room = text("r");
    lk_str empty = text("");
    lk_shares *shares = NULL;
    lk_error *error = NULL;
    lk_members *members;
    lk_allocator *allocator;
    const char *why = NULL;
    size_t len = 0;
    config.kind = LK_STRATEGY_MACHINE_ROOM_NEARBY;
    config.inner = LK_STRATEGY_CONSISTENT_HASH;
    allocator = allocator_of(strategy_of(&config), route_of(&queue, 1, &room),
                             members_of(&client, 1, &empty));
    CHECK_STATUS(lk_allocator_share(allocator, client, &shares, &error), LK_ERR_INVALID_ARG);
    CHECK_STATUS(lk_error_message(error, &why, &len), LK_OK);
    CHECK(strstr(why, "machine room of the client a") != NULL);
    lk_error_free(error);
    members = members_of(&client, 1, &room);
    CHECK_STATUS(lk_allocator_set_members(allocator, members, NULL), LK_OK);
    lk_members_free(members);
    check_share(allocator, "a", "0");
    lk_allocator_free(allocator);
}

int main(void)
{
    every_strategy();
    lists_in_any_order();
    bare_names();
    who_has_no_share();
    sticky_and_config_read_their_lists();
    the_hosts_hash();
    bad_values();
    unknown_rooms();
    return check_end("allocate");
}
