/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * lanekeeper.hpp: C++17 over lanekeeper.h, header only. Handles free themselves, turns and
 * consumers end themselves, and every answer is a status or a result. Nothing here throws, and
 * it compiles with -fno-exceptions -fno-rtti. Threads, progress and callbacks are as
 * lanekeeper.h says for each function.
 */
#ifndef LANEKEEPER_HPP
#define LANEKEEPER_HPP

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "lanekeeper.h"

namespace lanekeeper
{

/* lk_status, as a type of its own. */
enum class status : std::int32_t {
    ok = LK_OK,
    empty = LK_EMPTY,
    busy = LK_BUSY,
    stale = LK_STALE,
    stopped = LK_STOPPED,
    closed = LK_CLOSED,
    limit = LK_LIMIT,
    nothing = LK_NOTHING,
    null_arg = LK_ERR_NULL_ARG,
    invalid_arg = LK_ERR_INVALID_ARG,
    poisoned = LK_ERR_POISONED,
    panic = LK_ERR_PANIC,
    no_memory = LK_ERR_NO_MEMORY,
    abi_mismatch = LK_ERR_ABI_MISMATCH,
    overflow = LK_ERR_OVERFLOW,
    wrong_mode = LK_ERR_WRONG_MODE
};

inline const char *name(status s) noexcept
{
    return lk_status_name(static_cast<lk_status>(s));
}

/* A value, or the status that says why there is none. The value may be looked at if ok(). */
template <typename T> class [[nodiscard]] result
{
  public:
    result(lk_status why, T &&value) noexcept
        : why_(static_cast<lanekeeper::status>(why)), value_(std::move(value))
    {
    }
    bool ok() const noexcept { return why_ == lanekeeper::status::ok; }
    explicit operator bool() const noexcept { return ok(); }
    lanekeeper::status status() const noexcept { return why_; }
    T &operator*() noexcept { return value_; }
    const T &operator*() const noexcept { return value_; }
    T *operator->() noexcept { return &value_; }
    const T *operator->() const noexcept { return &value_; }

  private:
    lanekeeper::status why_;
    T value_;
};

namespace detail
{
struct queue_deleter {
    void operator()(lk_process_queue *queue) const noexcept { lk_process_queue_free(queue); }
};
struct error_deleter {
    void operator()(lk_error *error) const noexcept { lk_error_free(error); }
};
} // namespace detail

/* The detail of a refused configuration; empty if there is none. */
using error = std::unique_ptr<lk_error, detail::error_deleter>;

/* A turn that ends when it goes out of scope. The queue must outlive it. */
class turn
{
  public:
    turn() noexcept = default;
    turn(lk_process_queue *queue, lk_turn token) noexcept : queue_(queue), token_(token) {}
    turn(turn &&other) noexcept
        : queue_(std::exchange(other.queue_, nullptr)), token_(other.token_)
    {
    }
    turn &operator=(turn &&other) noexcept
    {
        std::swap(queue_, other.queue_);
        std::swap(token_, other.token_);
        return *this;
    }
    ~turn()
    {
        if (queue_ != nullptr) {
            std::int32_t ignored = 0;
            static_cast<void>(lk_turn_end(queue_, token_, 0, &ignored));
        }
    }

    lk_turn token() const noexcept { return token_; }

    /* Answers how many deliveries were written. */
    result<std::size_t> take(std::int64_t now_ms, lk_delivery *to, std::size_t capacity) noexcept
    {
        std::size_t len = 0;
        lk_status s = lk_turn_take(queue_, token_, now_ms, to, capacity, &len);
        return {s, std::move(len)};
    }
    result<lk_commit_result> commit(std::int64_t now_ms) noexcept
    {
        lk_commit_result r{};
        lk_status s = lk_turn_commit(queue_, token_, now_ms, &r);
        return {s, std::move(r)};
    }
    result<std::uint32_t> rollback(std::int64_t now_ms) noexcept
    {
        std::uint32_t count = 0;
        lk_status s = lk_turn_rollback(queue_, token_, now_ms, &count);
        return {s, std::move(count)};
    }
    result<lk_requeue_result> requeue(const lk_target *targets, std::size_t count,
                                      std::uint32_t attempts_plus, std::int64_t now_ms,
                                      std::int32_t *outcomes = nullptr) noexcept
    {
        lk_requeue_result r{};
        lk_status s =
            lk_turn_requeue(queue_, token_, targets, count, attempts_plus, now_ms, outcomes, &r);
        return {s, std::move(r)};
    }
    result<lk_complete_result> complete(const lk_target *targets, std::size_t count,
                                        std::int64_t now_ms,
                                        std::int32_t *outcomes = nullptr) noexcept
    {
        lk_complete_result r{};
        lk_status s = lk_turn_complete(queue_, token_, targets, count, now_ms, outcomes, &r);
        return {s, std::move(r)};
    }
    /* Ends the turn now and answers one of LK_TURN_END_*. */
    result<std::int32_t> end(std::int64_t now_ms) noexcept
    {
        std::int32_t what = LK_TURN_END_NOTHING;
        lk_status s = lk_turn_end(std::exchange(queue_, nullptr), token_, now_ms, &what);
        return {s, std::move(what)};
    }

  private:
    lk_process_queue *queue_ = nullptr;
    lk_turn token_{};
};

/* A consumer that ends when it goes out of scope. The queue must outlive it. */
class consumer
{
  public:
    consumer() noexcept = default;
    consumer(lk_process_queue *queue, lk_consumer token) noexcept : queue_(queue), token_(token) {}
    consumer(consumer &&other) noexcept
        : queue_(std::exchange(other.queue_, nullptr)), token_(other.token_)
    {
    }
    consumer &operator=(consumer &&other) noexcept
    {
        std::swap(queue_, other.queue_);
        std::swap(token_, other.token_);
        return *this;
    }
    ~consumer()
    {
        if (queue_ != nullptr) {
            static_cast<void>(lk_consumer_end(queue_, token_));
        }
    }

    lk_consumer token() const noexcept { return token_; }

    result<std::size_t> take(std::int64_t now_ms, lk_delivery *to, std::size_t capacity) noexcept
    {
        std::size_t len = 0;
        lk_status s = lk_consumer_take(queue_, token_, now_ms, to, capacity, &len);
        return {s, std::move(len)};
    }
    result<lk_complete_result> complete(const lk_target *targets, std::size_t count,
                                        std::int64_t now_ms,
                                        std::int32_t *outcomes = nullptr) noexcept
    {
        lk_complete_result r{};
        lk_status s = lk_consumer_complete(queue_, token_, targets, count, now_ms, outcomes, &r);
        return {s, std::move(r)};
    }
    result<lk_requeue_result> requeue(const lk_target *targets, std::size_t count,
                                      std::uint32_t attempts_plus, std::int64_t now_ms,
                                      std::int32_t *outcomes = nullptr) noexcept
    {
        lk_requeue_result r{};
        lk_status s = lk_consumer_requeue(queue_, token_, targets, count, attempts_plus, now_ms,
                                          outcomes, &r);
        return {s, std::move(r)};
    }
    /* Answers how many were won; claims and outcomes have room for count each. */
    result<std::size_t> claim(const lk_target *targets, std::size_t count, std::int64_t now_ms,
                              lk_claim *claims, std::int32_t *outcomes) noexcept
    {
        std::size_t won = 0;
        lk_status s =
            lk_consumer_claim(queue_, token_, targets, count, now_ms, claims, outcomes, &won);
        return {s, std::move(won)};
    }

  private:
    lk_process_queue *queue_ = nullptr;
    lk_consumer token_{};
};

/* One reference of a queue. Moving moves the reference; clone() makes another. */
class process_queue
{
  public:
    process_queue() noexcept = default;
    explicit process_queue(lk_process_queue *reference) noexcept : handle_(reference) {}

    static result<process_queue> create(const lk_process_queue_config &config,
                                        lk_payload_release_fn release = nullptr,
                                        lk_user_data_free_fn user_data_free = nullptr,
                                        void *user_data = nullptr,
                                        error *detail = nullptr) noexcept
    {
        lk_process_queue *queue = nullptr;
        lk_error *why = nullptr;
        lk_status s = lk_process_queue_new(&config, &queue, detail != nullptr ? &why : nullptr,
                                           release, user_data_free, user_data);
        if (detail != nullptr) {
            detail->reset(why);
        }
        return {s, process_queue(queue)};
    }

    /* For the functions of lanekeeper.h that are not wrapped here. */
    lk_process_queue *get() const noexcept { return handle_.get(); }
    explicit operator bool() const noexcept { return handle_ != nullptr; }

    result<process_queue> clone() const noexcept
    {
        lk_process_queue *other = nullptr;
        lk_status s = lk_process_queue_clone(get(), &other);
        return {s, process_queue(other)};
    }
    result<lk_put_result> put(const lk_message *messages, std::size_t count, std::int64_t now_ms,
                              std::int64_t broker_max = LK_BROKER_MAX_UNKNOWN) noexcept
    {
        lk_put_result r{};
        lk_status s = lk_process_queue_put(get(), messages, count, now_ms, broker_max, &r);
        return {s, std::move(r)};
    }
    result<lk_advance_result> advance(std::int64_t next, std::int64_t now_ms) noexcept
    {
        lk_advance_result r{};
        lk_status s = lk_process_queue_advance(get(), next, now_ms, &r);
        return {s, std::move(r)};
    }
    result<turn> begin_turn(std::int64_t now_ms) noexcept
    {
        lk_turn token{};
        lk_status s = lk_process_queue_begin_turn(get(), now_ms, &token);
        return {s, s == LK_OK ? turn(get(), token) : turn()};
    }
    result<consumer> begin_consumer() noexcept
    {
        lk_consumer token{};
        lk_status s = lk_process_queue_begin_consumer(get(), &token);
        return {s, s == LK_OK ? consumer(get(), token) : consumer()};
    }
    result<lk_complete_result> settle(lk_claim claim, bool sent, std::int64_t not_before_ms,
                                      std::int64_t now_ms) noexcept
    {
        lk_complete_result r{};
        lk_status s = lk_claim_settle(get(), claim, sent ? LK_SETTLE_SENT : LK_SETTLE_NOT_SENT,
                                      not_before_ms, now_ms, &r);
        return {s, std::move(r)};
    }
    lanekeeper::status stop() noexcept
    {
        return static_cast<lanekeeper::status>(lk_process_queue_stop(get()));
    }
    result<lk_close_result> close(std::int64_t now_ms) noexcept
    {
        lk_close_result r{};
        lk_status s = lk_process_queue_close(get(), now_ms, &r);
        return {s, std::move(r)};
    }
    result<std::uint64_t> count() const noexcept
    {
        std::uint64_t n = 0;
        lk_status s = lk_process_queue_count(get(), &n);
        return {s, std::move(n)};
    }
    result<std::int64_t> safe_offset() const noexcept
    {
        std::int64_t offset = 0;
        lk_status s = lk_process_queue_safe_offset(get(), &offset);
        return {s, std::move(offset)};
    }
    result<std::int64_t> pull_offset() const noexcept
    {
        std::int64_t offset = 0;
        lk_status s = lk_process_queue_pull_offset(get(), &offset);
        return {s, std::move(offset)};
    }
    result<lk_snapshot> snapshot(std::int64_t now_ms) const noexcept
    {
        lk_snapshot cut{};
        lk_status s = lk_process_queue_snapshot(get(), now_ms, &cut);
        return {s, std::move(cut)};
    }

  private:
    std::unique_ptr<lk_process_queue, detail::queue_deleter> handle_;
};

} // namespace lanekeeper

#endif /* LANEKEEPER_HPP */
