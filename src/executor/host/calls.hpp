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

/// The calls that prepared ops consist of, those to MPI among them; compute_calls.hpp has the
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
  int count = 0;               ///< elements as MPI's manual counts them for this kind
  const void* send = nullptr;  ///< may be MPI_IN_PLACE
  void* receive = nullptr;     ///< may be MPI_IN_PLACE
};

/// A collective: what MPI does not do in place, then its calls, then what is larger than an MPI
/// call can be as messages of its own.
struct CollectiveCall {
  std::optional<CopyCall> before;
  std::vector<MpiCall> calls;
  ExchangeCall messages;
  std::optional<CopyCall> after;
};
void run(const CollectiveCall& call, Player& player);

/// An op that means nothing here.
struct NoCall {};

/// The kind of work that is slowed: compute takes its core with it, communication leaves it to
/// others, and a delay, which is all there is of its op, sleeps.
enum class SlowedKind : std::uint8_t { compute, communication, delay };

/// The shortest time that like ops of a lane took so far.
struct LeastTime {
  units::Nanoseconds time{std::numeric_limits<std::int64_t>::max()};
  std::uint64_t plays = 0;  ///< that it is the least of
};
/// One per group of like communication; the calls of the lane point to them, so they stay where
/// they are.
using LeastTimes = std::vector<std::unique_ptr<LeastTime>>;

/// How one op is slowed; used by the thread of its lane.
class Slowing {
 public:
  /// Compute lasts `factor` times what it took, and a share longer that is drawn anew in each play:
  /// exponentially distributed, `jitter` on average, from `origin`, a number that no other op has.
  [[nodiscard]] static Slowing compute(double factor, double jitter, std::uint64_t origin);
  /// Communication lasts factor - 1 times the shortest time of like ops so far longer: what is more
  /// than that was waiting for a partner, which a slow link does not lengthen. If it did, two ranks
  /// would answer each other's delays with longer ones, without end. The first of like ops is not
  /// lengthened: how much of it was waiting, until its partners had started, is not known yet.
  /// `least` outlives this object.
  [[nodiscard]] static Slowing communication(double factor, LeastTime& least);

  /// Something else, done sooner, lasts `time`; `factor` and `jitter` lengthen that as they do
  /// compute.
  [[nodiscard]] static Slowing delay(units::Nanoseconds time, double factor, double jitter,
                                     std::uint64_t origin);

  [[nodiscard]] SlowedKind kind() const { return kind_; }
  /// How much longer an op lasts that took `took`.
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

/// An op that lasts longer than it has to, on purpose. A call of its own: where nothing is slowed,
/// nothing looks whether it is.
struct SlowedCall {
  Call call;
  Slowing slowing;
};

/// An op that never ends, or throws, when it is played for the third time.
struct StuckCall {
  Call call;
  program::Stuck how = program::Stuck::no;
  int rank = 0;  ///< of the world, for messages
  std::uint32_t plays = 0;
};

}  // namespace isoscale::executor::host
