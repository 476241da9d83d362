// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "executor/host/fault_injection.hpp"

#include <fmt/format.h>
#include <sys/prctl.h>

#include <cmath>
#include <cstring>
#include <ctime>
#include <thread>

#include "comm/communicator.hpp"
#include "program/fill_and_checksum.hpp"

namespace isoscale::executor::host {
namespace {

/// Sets the product of a GEMM to 0.
void clear_product(const GemmCall& call) {
  const std::size_t size = program::element_size(call.type);
  for (std::size_t b = 0; b < call.op.batch; ++b) {
    for (std::size_t row = 0; row < call.op.m; ++row) {
      const std::size_t first = b * call.op.d.batch_stride + row * call.op.d.row_stride;
      std::memset(call.d + first * size, 0, call.op.n * size);
    }
  }
}

}  // namespace

units::Nanoseconds Slowing::extra(units::Nanoseconds took) {
  double share = factor - 1;
  if (jitter > 0) {
    const std::uint64_t word = program::scatter_bits(origin + ++drawn * 0x9e3779b97f4a7c15ULL);
    const double uniform = static_cast<double>((word >> 11) + 1) * 0x1p-53;  // in (0, 1]
    share -= jitter * std::log(uniform);
  }
  const auto times = [](double number, units::Nanoseconds one) {
    return units::Nanoseconds{std::llround(number * static_cast<double>(one.value()))};
  };
  if (kind == SlowedKind::delay) {
    return std::max(times(1 + share, time) - took, units::Nanoseconds{});
  }
  if (least != nullptr) {
    least->time = std::min(least->time, took);
    if (++least->plays < 2) return {};
    took = least->time;
  }
  return times(share, took);
}

void pass_time(SlowedKind kind, units::Nanoseconds until) {
  if (kind == SlowedKind::delay) {
    // By default the kernel may end a sleep up to 50 us late, in order to wake several threads at
    // once. This call reduces the allowed lateness to 1 ns.
    static_cast<void>(::prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL));
    constexpr std::int64_t second = 1'000'000'000;
    const timespec deadline{.tv_sec = until.value() / second, .tv_nsec = until.value() % second};
    // CLOCK_MONOTONIC is the clock that comm::now() reads. If a signal ends the sleep early, the
    // loop below waits for the rest of the time.
    static_cast<void>(::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &deadline, nullptr));
  }
  while (comm::now() < until) {
    if (kind != SlowedKind::compute) std::this_thread::yield();
  }
}

std::optional<Slowing> OpSlower::slowing_of(const program::Op& op, std::uint32_t index,
                                            std::size_t lane) {
  const program::OpKind kind = program::kind_of(op.payload);
  if (program::communicates(kind)) {
    const double factor = link_factor(op);
    if (factor == 1) return std::nullopt;
    return Slowing{
        .kind = SlowedKind::communication, .factor = factor, .least = least_of(op, lane)};
  }
  const auto* const gemm = std::get_if<program::Gemm>(&op.payload);
  const double factor = gemm != nullptr ? faults_.gemm_factor : 1;
  Slowing slowing{.factor = factor,
                  .jitter = faults_.jitter,
                  .origin = program::fill_origin(program::fill_origin(faults_.seed) + index)};
  if (gemm != nullptr && faults_.gemm_rate != 0) {
    const double flop = 2.0 * gemm->m * gemm->n * gemm->k * gemm->batch;
    slowing.kind = SlowedKind::delay;
    slowing.time = units::to_nanoseconds(units::Seconds{flop / faults_.gemm_rate});
    return slowing;
  }
  if (!program::computes(kind) || (factor == 1 && faults_.jitter == 0)) return std::nullopt;
  return slowing;
}

Call slowed(Call call, Slowing slowing) {
  return [call = std::move(call), slowing](Player& player) mutable {
    const units::Nanoseconds begin = comm::now();
    call(player);
    const units::Nanoseconds end = comm::now();
    pass_time(slowing.kind, end + slowing.extra(end - begin));
  };
}

Call without_product(const GemmCall& gemm) {
  if (gemm.op.beta != 0 && !gemm.c_to_d) return [](Player& /*player*/) {};
  return [gemm](Player& /*player*/) { clear_product(gemm); };
}

/// Returns the factor by which injected slow links lengthen the op: the largest factor of the slow
/// links that it uses, or 1 if it uses none.
double OpSlower::link_factor(const program::Op& op) const {
  double factor = 1;
  const std::vector<int> others = program::partners(op, mesh_, rank_);
  for (const program::SlowLink& link : faults_.slow_links) {
    if (rank_ != link.low && rank_ != link.high) continue;
    const int other = rank_ == link.low ? link.high : link.low;
    if (std::ranges::find(others, other) != others.end()) factor = std::max(factor, link.factor);
  }
  return factor;
}

/// Returns the LeastTime object that `op` shares with similar ops: those of the same lane (stream)
/// and kind that exchange as much data with the same partners. The shortest duration of all these
/// ops contains the least waiting for partners, so it is the best estimate of the transfer time.
std::shared_ptr<LeastTime> OpSlower::least_of(const program::Op& op, std::size_t lane) {
  std::vector<std::uint64_t> key{lane, static_cast<std::uint64_t>(program::kind_of(op.payload))};
  if (const auto* const collective = std::get_if<program::Collective>(&op.payload)) {
    key.insert(key.end(),
               {collective->axes.bits(), collective->send.count, collective->receive.count});
  } else if (const auto* const exchange = std::get_if<program::Exchange>(&op.payload)) {
    for (const program::Transfer& transfer : exchange->transfers) {
      key.insert(key.end(), {static_cast<std::uint64_t>(transfer.direction),
                             static_cast<std::uint64_t>(transfer.axis),
                             static_cast<std::uint64_t>(transfer.offset), transfer.slice.count});
    }
  }
  std::shared_ptr<LeastTime>& least = alike_[std::move(key)];
  if (least == nullptr) least = std::make_shared<LeastTime>();
  return least;
}

Call stuck(Call call, program::Stuck how, int rank) {
  return [call = std::move(call), how, rank, plays = 0U](Player& player) mutable {
    constexpr std::uint32_t stuck_at = 3;
    if (++plays != stuck_at) return call(player);
    if (how == program::Stuck::fails) {
      throw base::Error(fmt::format("stuck={}:throw was injected", rank));
    }
    const volatile bool always = true;  // keeps the compiler from removing the endless loop
    while (always) {
    }
  };
}

}  // namespace isoscale::executor::host
