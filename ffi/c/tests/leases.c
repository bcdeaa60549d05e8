/* Turns of many queues, leases and grants from C (T1-T4, L1-L5). */
#include "check.h"

typedef struct stage {
    lk_queue_ids *ids;
    lk_queue_locks *locks;
    lk_leases *leases;
    uint64_t queues[2];
    uint64_t group;
    uint64_t a;
    uint64_t b;
} stage;

static uint64_t queue_number(lk_queue_ids *ids, int32_t queue_id)
{
    uint64_t id = 0;
    CHECK_STATUS(lk_queue_ids_intern(ids, "topic", 5, "broker-a", 8, queue_id, &id), LK_OK);
    CHECK(id != 0);
    return id;
}

static void begin(stage *s)
{
    memset(s, 0, sizeof(*s));
    CHECK_STATUS(lk_queue_ids_new(&s->ids), LK_OK);
    s->queues[0] = queue_number(s->ids, 0);
    s->queues[1] = queue_number(s->ids, INT32_MAX);
    CHECK_STATUS(lk_queue_locks_new(s->ids, &s->locks), LK_OK);
    CHECK_STATUS(lk_leases_new(s->ids, 100, &s->leases), LK_OK);
    CHECK_STATUS(lk_leases_group(s->leases, "group", 5, &s->group), LK_OK);
    CHECK_STATUS(lk_leases_client(s->leases, "a", 1, &s->a), LK_OK);
    CHECK_STATUS(lk_leases_client(s->leases, "b", 1, &s->b), LK_OK);
}

static void end(stage *s)
{
    lk_leases_free(s->leases);
    lk_queue_locks_free(s->locks);
    lk_queue_ids_free(s->ids);
}

/* T4: a number is counted, and stale for ever once its last reference is gone. */
static void numbers(void)
{
    stage s;
    uint64_t again = 0;
    uint64_t other = 0;
    begin(&s);
    CHECK_STATUS(lk_queue_ids_intern(s.ids, "topic", 5, "broker-a", 8, 0, &again), LK_OK);
    CHECK(again == s.queues[0] && again != s.queues[1]);
    CHECK_STATUS(lk_queue_ids_release(s.ids, again), LK_OK);
    CHECK_STATUS(lk_queue_ids_add_reference(s.ids, again), LK_OK);
    CHECK_STATUS(lk_queue_ids_release(s.ids, again), LK_OK);
    CHECK_STATUS(lk_queue_ids_release(s.ids, again), LK_OK);
    CHECK_STATUS(lk_queue_ids_release(s.ids, again), LK_STALE);
    other = queue_number(s.ids, 5);
    CHECK(other != again);
    CHECK_STATUS(lk_queue_ids_add_reference(s.ids, again), LK_STALE);
    CHECK_STATUS(lk_queue_locks_open(s.locks, again, LK_SHARD_NONE, 1), LK_STALE);

    CHECK_STATUS(lk_queue_ids_intern(s.ids, NULL, 0, NULL, 0, 0, &other), LK_OK);
    CHECK_STATUS(lk_queue_ids_intern(s.ids, "t\0t", 3, "b", 1, 0, &other), LK_ERR_INVALID_ARG);
    CHECK_STATUS(lk_queue_ids_intern(s.ids, "t", 1, "\xff", 1, 0, &other), LK_ERR_INVALID_ARG);
    CHECK_STATUS(lk_queue_ids_intern(s.ids, "t", 1, "b", 1, -1, &other), LK_ERR_INVALID_ARG);
    end(&s);
}

static void turns(void)
{
    stage s;
    lk_queue_turn turn;
    lk_queue_turn shard;
    lk_queue_turn none;
    int32_t what = -1;
    uint64_t held = 9;
    begin(&s);
    memset(&none, 0, sizeof(none));
    CHECK_STATUS(lk_queue_locks_begin(s.locks, s.queues[0], LK_SHARD_NONE, &turn), LK_CLOSED);
    CHECK_STATUS(lk_queue_locks_open(s.locks, s.queues[0], LK_SHARD_NONE, 7), LK_OK);
    CHECK_STATUS(lk_queue_locks_open(s.locks, s.queues[0], LK_SHARD_NONE, 8), LK_BUSY);
    CHECK_STATUS(lk_queue_locks_open(s.locks, s.queues[0], 3, 7), LK_OK);
    CHECK_STATUS(lk_queue_locks_begin(s.locks, s.queues[0], LK_SHARD_NONE, &turn), LK_OK);
    CHECK(turn.queue == s.queues[0] && turn.generation == 7);
    CHECK_STATUS(lk_queue_locks_begin(s.locks, s.queues[0], 3, &shard), LK_OK);
    CHECK_STATUS(lk_queue_locks_held_count(s.locks, &held), LK_OK);
    CHECK_EQ(held, 2);
    CHECK_STATUS(lk_queue_locks_begin(s.locks, s.queues[0], LK_SHARD_NONE, &none), LK_BUSY);
    CHECK_STATUS(lk_queue_locks_end(s.locks, turn, &what), LK_OK);
    CHECK_EQ(what, LK_TURN_END_RUN_AGAIN); /* T1 */
    CHECK_STATUS(lk_queue_locks_end(s.locks, turn, &what), LK_STALE); /* T3 */
    CHECK_STATUS(lk_queue_locks_end(s.locks, none, &what), LK_STALE);
    CHECK_STATUS(lk_queue_locks_close(s.locks, s.queues[0], LK_SHARD_NONE, 6, &what), LK_STALE);
    CHECK_STATUS(lk_queue_locks_close(s.locks, s.queues[0], LK_SHARD_NONE, 7, &what), LK_OK);
    CHECK_EQ(what, LK_HAND_OVER_NOW); /* T2 */
    CHECK_STATUS(lk_queue_locks_close(s.locks, s.queues[0], LK_SHARD_NONE, 7, &what), LK_CLOSED);
    CHECK_STATUS(lk_queue_locks_close(s.locks, s.queues[0], 3, 7, &what), LK_OK);
    CHECK_EQ(what, LK_HAND_OVER_AT_END_OF_TURN);
    CHECK_STATUS(lk_queue_locks_end(s.locks, shard, &what), LK_OK);
    CHECK_EQ(what, LK_TURN_END_HAND_OVER);
    /* Both hand-overs told: only this test names the queue. */
    CHECK_STATUS(lk_queue_ids_release(s.ids, s.queues[0]), LK_OK);
    CHECK_STATUS(lk_queue_locks_begin(s.locks, s.queues[0], LK_SHARD_NONE, &turn), LK_STALE);
    end(&s);
}

/* A turn of one table is stale in another, and so is every forgery of one bit. */
static void foreign_turns(void)
{
    stage s;
    lk_queue_locks *other = NULL;
    lk_queue_turn turn;
    lk_queue_turn theirs;
    int32_t what = -1;
    uint32_t bit;
    begin(&s);
    CHECK_STATUS(lk_queue_locks_new(s.ids, &other), LK_OK);
    CHECK_STATUS(lk_queue_locks_open(s.locks, s.queues[0], LK_SHARD_NONE, 1), LK_OK);
    CHECK_STATUS(lk_queue_locks_open(other, s.queues[0], LK_SHARD_NONE, 1), LK_OK);
    CHECK_STATUS(lk_queue_locks_begin(s.locks, s.queues[0], LK_SHARD_NONE, &turn), LK_OK);
    CHECK_STATUS(lk_queue_locks_begin(other, s.queues[0], LK_SHARD_NONE, &theirs), LK_OK);
    CHECK_STATUS(lk_queue_locks_end(s.locks, theirs, &what), LK_STALE);
    CHECK_STATUS(lk_queue_locks_end(other, turn, &what), LK_STALE);
    for (bit = 0; bit < 64; bit++) {
        lk_queue_turn forged = turn;
        forged.token ^= (uint64_t)1 << bit;
        CHECK_STATUS(lk_queue_locks_end(s.locks, forged, &what), LK_STALE);
        forged = turn;
        forged.queue ^= (uint64_t)1 << bit;
        CHECK_STATUS(lk_queue_locks_end(s.locks, forged, &what), LK_STALE);
    }
    CHECK_STATUS(lk_queue_locks_end(s.locks, turn, &what), LK_OK);
    CHECK_STATUS(lk_queue_locks_end(other, theirs, &what), LK_OK);
    lk_queue_locks_free(other);
    end(&s);
}

static void leases(void)
{
    stage s;
    lk_lease_holder holder;
    lk_status statuses[2] = {-77, -77};
    uint64_t tokens[2] = {0, 0};
    uint64_t token = 0;
    size_t count = 9;
    bool flag = false;
    begin(&s);
    CHECK_STATUS(lk_leases_holder(s.leases, s.group, s.queues[0], &holder), LK_EMPTY);
    CHECK_STATUS(lk_leases_all_expired(s.leases, s.group, 0, &flag), LK_OK);
    CHECK(flag);
    CHECK_STATUS(lk_leases_acquire(s.leases, s.group, s.queues[0], s.a, 0, &token), LK_OK);
    CHECK_EQ(token, 101);
    CHECK_STATUS(lk_leases_acquire(s.leases, s.group, s.queues[0], s.b, 60000, &token), LK_BUSY);
    CHECK_STATUS(lk_leases_acquire_batch(s.leases, s.group, s.b, 60000, s.queues, 2, statuses,
                                         tokens, &count),
                 LK_OK);
    CHECK_EQ(count, 1);
    CHECK_STATUS(statuses[0], LK_BUSY);
    CHECK_STATUS(statuses[1], LK_OK);
    CHECK(tokens[0] == 0 && tokens[1] == 101);
    CHECK_STATUS(lk_leases_acquire_batch(s.leases, s.group, s.b, 60001, s.queues, 2, NULL, NULL,
                                         &count),
                 LK_OK);
    CHECK_EQ(count, 2);
    CHECK_STATUS(lk_leases_holder(s.leases, s.group, s.queues[0], &holder), LK_OK);
    CHECK(holder.client == s.b && holder.queue == s.queues[0] && holder.token == 102);
    CHECK_EQ(holder.last_ms, 60001);
    /* L3: what another holds is not changed. */
    CHECK_STATUS(lk_leases_release(s.leases, s.group, s.queues[0], s.a, &flag), LK_OK);
    CHECK(!flag);
    CHECK_STATUS(lk_leases_all_expired(s.leases, s.group, 120001, &flag), LK_OK);
    CHECK(!flag);
    CHECK_STATUS(lk_leases_release(s.leases, s.group, s.queues[0], s.b, &flag), LK_OK);
    CHECK(flag);
    CHECK_STATUS(lk_leases_sweep(s.leases, 120001, &count), LK_OK);
    CHECK_EQ(count, 0);
    CHECK_STATUS(lk_leases_sweep(s.leases, 120002, &count), LK_OK);
    CHECK_EQ(count, 1);
    CHECK_STATUS(lk_leases_acquire(s.leases, s.group, s.queues[1], s.a, 0, &token), LK_OK);
    CHECK_STATUS(lk_leases_release_batch(s.leases, s.group, s.a, s.queues, 2, &count), LK_OK);
    CHECK_EQ(count, 1);
    CHECK_STATUS(lk_leases_acquire(s.leases, s.group, s.queues[0], s.a, INT64_MAX, &token),
                 LK_ERR_INVALID_ARG);
    CHECK_STATUS(lk_leases_release_client(s.leases, s.a), LK_OK);
    CHECK_STATUS(lk_leases_acquire(s.leases, s.group, s.queues[0], s.a, 0, &token), LK_STALE);
    CHECK_STATUS(lk_leases_release_group(s.leases, s.group), LK_OK);
    CHECK_STATUS(lk_leases_release_group(s.leases, s.group), LK_STALE);
    end(&s);
}

/* Answers the request that is due at sent_ms with one queue, and gives what that meant. */
static int32_t grant(lk_grants *grants, int64_t sent_ms, uint64_t queue, uint64_t token)
{
    lk_grant_request request;
    lk_grant_answer answer;
    lk_grant_told told[4];
    uint64_t queues[4];
    size_t len = 0;
    CHECK_STATUS(lk_grants_next_request(grants, sent_ms, queues, 4, &len, &request), LK_OK);
    CHECK(len == 1 && queues[0] == queue);
    answer.queue = queue;
    answer.token = token;
    CHECK_STATUS(lk_grants_answered(grants, request.request, &answer, 1, sent_ms, told, 4, &len),
                 LK_OK);
    CHECK_EQ(len, 1);
    CHECK(told[0].queue == queue);
    return told[0].what;
}

/* L4 */
static void grants(void)
{
    lk_grants *grants = NULL;
    lk_grant_request request;
    lk_grant_told told[2];
    uint64_t queues[1];
    uint64_t number = 0;
    size_t len = 0;
    int64_t due_ms = 0;
    bool valid = true;
    lk_status small;
    CHECK_STATUS(lk_grants_new(&grants), LK_OK);
    CHECK_STATUS(lk_grants_next_due(grants, &due_ms), LK_EMPTY);
    CHECK_STATUS(lk_grants_want(grants, 7, 3, 1, 0), LK_OK);
    CHECK_STATUS(lk_grants_want(grants, 7, 3, 2, 0), LK_STALE);
    CHECK_STATUS(lk_grants_next_due(grants, &due_ms), LK_OK);
    CHECK_EQ(due_ms, 0);
    CHECK_STATUS(lk_grants_next_request(grants, 0, NULL, 0, &len, &request), LK_LIMIT);
    CHECK_EQ(len, 1);
    CHECK_EQ(grant(grants, 0, 7, 5), LK_TOLD_GRANTED);
    CHECK_STATUS(lk_grants_next_request(grants, 0, queues, 1, &len, &request), LK_EMPTY);
    CHECK_STATUS(lk_grants_token(grants, 7, 1, &number), LK_OK);
    CHECK_EQ(number, 5);
    CHECK_STATUS(lk_grants_token(grants, 7, 2, &number), LK_EMPTY);
    CHECK_STATUS(lk_grants_is_valid(grants, 7, 1, 20000, &valid), LK_OK);
    CHECK(valid);
    CHECK_EQ(grant(grants, 20000, 7, 5), LK_TOLD_RENEWED);

    CHECK_STATUS(lk_grants_next_request(grants, 40000, queues, 1, &len, &request), LK_OK);
    CHECK_EQ(request.broker, 3);
    small = lk_grants_answered(grants, request.request, NULL, 0, 40000, told, 0, &len);
    CHECK_STATUS(small, LK_LIMIT);
    CHECK_EQ(len, 1);
    CHECK_STATUS(lk_grants_answered(grants, request.request, NULL, 0, 40000, told, 2, &len), LK_OK);
    CHECK(len == 1 && told[0].what == LK_TOLD_REFUSED && told[0].generation == 1);
    CHECK_STATUS(lk_grants_is_valid(grants, 7, 1, 40000, &valid), LK_OK);
    CHECK(!valid);
    CHECK_STATUS(lk_grants_next_request(grants, 60000, queues, 1, &len, &request), LK_OK);
    CHECK_STATUS(lk_grants_failed(grants, request.request, 61000), LK_OK);
    CHECK_STATUS(lk_grants_next_due(grants, &due_ms), LK_OK);
    CHECK_EQ(due_ms, 62000);
    CHECK_EQ(grant(grants, 80001, 7, 6), LK_TOLD_SUPERSEDED);
    CHECK_STATUS(lk_grants_closing(grants, 7, 1, 80001, 20000), LK_OK);
    CHECK_STATUS(lk_grants_forget(grants, 7, &number), LK_OK);
    CHECK_EQ(number, 3);
    CHECK_STATUS(lk_grants_forget(grants, 7, &number), LK_EMPTY);
    lk_grants_free(grants);
}

int main(void)
{
    numbers();
    turns();
    foreign_turns();
    leases();
    grants();
    return check_end("leases");
}
