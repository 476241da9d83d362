// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include "executor/host/compute_calls.hpp"
#include "program/op.hpp"
#include "program/session_options.hpp"
#include "units/quantity.hpp"

/// The calls that prepared ops consist of, including those to MPI; compute_calls.hpp has the
/// others.
namespace isoscale::executor::host {

struct Player;

struct Message {
  std::byte* data = nullptr;
  int count = 0;
  MPI_Datatype type = MPI_BYTE;
  int peer = 0;
  int tag = 0;
  MPI_Comm communicator = MPI_COMM_NULL;
};

/// Messages that start together and end together.
struct ExchangeCall {
  std::vector<Message> receives, sends;
};
void run(const ExchangeCall& call, Player& player);

/// One call of one MPI collective.
struct MpiCall {
  program::CollectiveKind kind = program::CollectiveKind::barrier;
  MPI_Comm communicator = MPI_COMM_NULL;
  MPI_Datatype type = MPI_BYTE;
  MPI_Op operation = MPI_OP_NULL;
  int root = 0;
  int count = 0;               ///< elements, as MPI's manual counts them for this kind
  const void* send = nullptr;  ///< may be MPI_IN_PLACE
  void* receive = nullptr;     ///< may be MPI_IN_PLACE
};

/// A collective: a copy for what MPI cannot do in place, then the calls, then messages for what is
/// larger than an MPI call can be.
struct CollectiveCall {
  std::optional<CopyCall> before;
  std::vector<MpiCall> calls;
  ExchangeCall messages;
  std::optional<CopyCall> after;
};
void run(const CollectiveCall& call, Player& player);

/// An op that has no effect on the host.
struct NoCall {};

/// The kind of work that is slowed: compute keeps its core busy, communication leaves the core to
/// others, and a delay, which replaces its op's work, sleeps.
enum class SlowedKind : std::uint8_t { compute, communication, delay };

/// The shortest time that the similar ops of a lane took so far.
struct LeastTime {
  units::Nanoseconds time{std::numeric_limits<std::int64_t>::max()};
  std::uint64_t plays = 0;  ///< number of plays that `time` is the least of
};
/// One entry per group of similar communication ops; the calls of the lane point to the entries, so
/// they must not move.
using LeastTimes = std::vector<std::unique_ptr<LeastTime>>;

/// The slowing of one op; only the thread of its lane uses it.
class Slowing {
 public:
  /// Makes compute last `factor` times as long, plus a share that is drawn anew in each play:
  /// exponentially distributed, `jitter` on average, from `origin`, a number that no other op has.
  [[nodiscard]] static Slowing compute(double factor, double jitter, std::uint64_t origin);
  /// Makes communication longer by factor - 1 times the shortest time of similar ops so far: any
  /// time beyond that was a wait for a partner, which a slow link does not lengthen. If it did, two
  /// ranks would answer each other's delays with longer ones, without end. The first of similar ops
  /// is not lengthened: how much of it was a wait until its partners had started is not known yet.
  /// `least` must outlive this object.
  [[nodiscard]] static Slowing communication(double factor, LeastTime& least);

  /// Makes other, shorter work last `time`; `factor` and `jitter` lengthen that as they do for
  /// compute.
  [[nodiscard]] static Slowing delay(units::Nanoseconds time, double factor, double jitter,
                                     std::uint64_t origin);

  [[nodiscard]] SlowedKind kind() const { return kind_; }
  /// Returns the time by which an op that took `took` is lengthened.
  [[nodiscard]] units::Nanoseconds extra(units::Nanoseconds took);

 private:
  Slowing(SlowedKind kind, double factor, double jitter, std::uint64_t origin)
      : kind_(kind), factor_(factor), jitter_(jitter), origin_(origin) {}
  [[nodiscard]] double longer_share();

  SlowedKind kind_;
  double factor_, jitter_;
  std::uint64_t origin_;
  std::uint64_t drawn_ = 0;
  LeastTime* least_ = nullptr;  ///< of communication
  units::Nanoseconds time_{};   ///< of a delay
};

struct SlowedCall;
struct StuckCall;

using Call =
    std::variant<GemmCall, CollectiveCall, ExchangeCall, CopyCall, AddCall, CastCall, FillCall,
                 UpdateCall, EmulatedGemmCall, EmulatedAddCall, EmulatedUpdateCall, NormCall,
                 NormGradientCall, ActivationCall, ActivationGradientCall, SoftmaxCall,
                 SoftmaxGradientCall, SelectCall, SpreadCall, RowsCall, ClearCall, ChecksumCall,
                 NoCall, std::unique_ptr<SlowedCall>, std::unique_ptr<StuckCall>>;

/// An op that is lengthened on purpose. It is a call of its own, so that ops that are not slowed
/// need no check.
struct SlowedCall {
  Call call;
  Slowing slowing;
};

/// An op that never ends, or throws, in its third play.
struct StuckCall {
  Call call;
  program::Stuck how = program::Stuck::no;
  int rank = 0;  ///< of the world, for messages
  std::uint32_t plays = 0;
};

}  // namespace isoscale::executor::host
