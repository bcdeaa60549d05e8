// The C++ wrapper: references free themselves, turns and consumers end themselves, answers are
// results. Compiled with -fno-exceptions -fno-rtti.
#include <type_traits>

#include "host.h"
#include "lanekeeper.hpp"

namespace lk = lanekeeper;

static_assert(std::is_nothrow_move_constructible_v<lk::process_queue>);
static_assert(!std::is_copy_constructible_v<lk::process_queue>);
static_assert(!std::is_copy_constructible_v<lk::turn>);
static_assert(!std::is_copy_constructible_v<lk::consumer>);

static void orderly()
{
    static host h;
    lk_process_queue_config config = LK_PROCESS_QUEUE_CONFIG_INIT;
    lk_message batch[3] = {host_message(0, 1), host_message(1, 1), host_message(2, 1)};
    lk_delivery taken[3];
    {
        auto queue = lk::process_queue::create(config, host_release, host_data_free, &h);
        CHECK(queue.ok());
        auto put = queue->put(batch, 3, 0);
        CHECK(put && put->accepted == 3 && put->schedule == 1);
        {
            auto turn = queue->begin_turn(0);
            CHECK(turn.ok());
            CHECK(queue->begin_turn(0).status() == lk::status::busy);
            auto len = turn->take(0, taken, 2);
            CHECK(len && *len == 2);
            auto rolled_back = turn->rollback(0);
            CHECK(rolled_back && *rolled_back == 2);
            CHECK(turn->take(0, taken, 2).ok());
            auto committed = turn->commit(0);
            CHECK(committed && committed->safe_offset == 2);
            CHECK(turn->commit(0).status() == lk::status::nothing);
            auto end = turn->end(0);
            CHECK(end && *end == LK_TURN_END_RUN_AGAIN);
        }
        {
            auto first = queue->begin_turn(0);
            lk::turn moved = std::move(*first);
            CHECK(moved.take(0, taken, 3).ok());
        }
        CHECK(queue->begin_turn(0).ok()); // the scope ended the one before
        auto other = queue->clone();
        lk::process_queue moved = std::move(*queue);
        CHECK(!*queue && moved);
        moved = lk::process_queue();
        CHECK_EQ(h.data_freed, 0);
        auto count = other->count();
        CHECK(count && *count == 1);
    }
    CHECK_EQ(h.total, 3);
    CHECK_EQ(h.data_freed, 1);
}

static void concurrent()
{
    lk_process_queue_config config = LK_PROCESS_QUEUE_CONFIG_INIT;
    config.mode = LK_MODE_CONCURRENT;
    config.consumers_max = 1;
    auto queue = lk::process_queue::create(config);
    lk_message batch[2] = {host_message(0, 1), host_message(1, 1)};
    lk_delivery taken[2];
    lk_target targets[2] = {host_target(0, 0), host_target(1, 0)};
    lk_claim claim;
    int32_t outcome = -1;
    CHECK(queue->put(batch, 2, 0).ok());
    {
        auto consumer = queue->begin_consumer();
        CHECK(queue->begin_consumer().status() == lk::status::limit);
        CHECK(consumer->take(0, taken, 2).ok());
        auto completed = consumer->complete(targets, 1, 0, &outcome);
        CHECK(completed && completed->finished == 1 && outcome == LK_OUTCOME_WON);
        auto won = consumer->claim(targets + 1, 1, 0, &claim, &outcome);
        CHECK(won && *won == 1);
        auto settled = queue->settle(claim, true, 0, 0);
        CHECK(settled && settled->safe_offset == 2);
    }
    CHECK(queue->begin_consumer().ok());
    CHECK(queue->stop() == lk::status::ok);
    auto closed = queue->close(0);
    CHECK(closed && closed->safe_offset == 2 && closed->hand_over == 1);
    CHECK(queue->snapshot(0)->closed == 1);
}

static void refused()
{
    lk_process_queue_config config = LK_PROCESS_QUEUE_CONFIG_INIT;
    lk::error why;
    const char *text = nullptr;
    size_t len = 0;
    config.mode = 5;
    auto queue = lk::process_queue::create(config, nullptr, nullptr, nullptr, &why);
    CHECK(queue.status() == lk::status::invalid_arg && !*queue);
    CHECK(strcmp(lk::name(queue.status()), "LK_ERR_INVALID_ARG") == 0);
    CHECK_STATUS(lk_error_message(why.get(), &text, &len), LK_OK);
    CHECK(strstr(text, "mode") != nullptr);
    lk::process_queue none;
    CHECK(none.count().status() == lk::status::null_arg);
}

int main()
{
    orderly();
    concurrent();
    refused();
    return check_end("raii");
}
