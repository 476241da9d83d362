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
#include "program/program.hpp"
#include "units/quantity.hpp"

/// The calls that prepared ops consist of; this file has those to MPI, compute_calls.hpp the
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

/// A collective. Data that MPI cannot handle in place is copied before or after the calls; what is
/// too large for an MPI call is sent as messages.
struct CollectiveCall {
  std::optional<CopyCall> before;
  std::vector<MpiCall> calls;
  ExchangeCall messages;
  std::optional<CopyCall> after;
};
void run(const CollectiveCall& call, Player& player);

/// An op that has no effect on the host.
struct NoCall {};

/// How an op is slowed. compute: its core is kept busy; communication: the core is left to others;
/// delay: the thread sleeps instead of doing the op's work.
enum class SlowedKind : std::uint8_t { compute, communication, delay };

/// The shortest time so far of the similar communication ops of a lane.
struct LeastTime {
  units::Nanoseconds time{std::numeric_limits<std::int64_t>::max()};
  std::uint64_t plays = 0;  ///< number of times of which `time` is the least
};
/// One entry for each group of similar communication ops. Calls point to the entries, so they must
/// not move.
using LeastTimes = std::vector<std::unique_ptr<LeastTime>>;

/// How one op is slowed; only the thread of its lane uses this object.
class Slowing {
 public:
  /// Makes compute take `factor` times as long, plus a random share of its time that is drawn anew
  /// in each play: exponentially distributed, `jitter` on average. `origin` is the start of the
  /// random numbers; no other op may have the same.
  [[nodiscard]] static Slowing compute(double factor, double jitter, std::uint64_t origin);
  /// Makes communication longer by factor - 1 times the shortest time of similar ops so far. Any
  /// time beyond that was a wait for a partner, which a slow link does not lengthen; if it did, two
  /// ranks would answer each other's delays with longer ones, without end. The first of similar ops
  /// is not lengthened: it is not known yet how much of it was a wait for partners to start.
  /// `least` must outlive this object.
  [[nodiscard]] static Slowing communication(double factor, LeastTime& least);

  /// Replaces work by a delay of `time`, which `factor` and `jitter` lengthen as they lengthen
  /// compute.
  [[nodiscard]] static Slowing delay(units::Nanoseconds time, double factor, double jitter,
                                     std::uint64_t origin);

  [[nodiscard]] SlowedKind kind() const { return kind_; }
  /// Returns the time by which an op that took `took` must be lengthened.
  [[nodiscard]] units::Nanoseconds extra(units::Nanoseconds took);

 private:
  Slowing(SlowedKind kind, double factor, double jitter, std::uint64_t origin)
      : kind_(kind), factor_(factor), jitter_(jitter), origin_(origin) {}
  [[nodiscard]] double longer_share();

  SlowedKind kind_;
  double factor_, jitter_;
  std::uint64_t origin_;
  std::uint64_t drawn_ = 0;
  LeastTime* least_ = nullptr;  ///< communication only
  units::Nanoseconds time_{};   ///< delay only
};

struct SlowedCall;
struct StuckCall;

using Call =
    std::variant<GemmCall, CollectiveCall, ExchangeCall, CopyCall, AddCall, CastCall, FillCall,
                 UpdateCall, NormCall, NormGradientCall, ActivationCall, ActivationGradientCall,
                 SoftmaxCall, SoftmaxGradientCall, SelectCall, SpreadCall, RowsCall, ClearCall,
                 ChecksumCall, NoCall, std::unique_ptr<SlowedCall>, std::unique_ptr<StuckCall>>;

/// An op that is lengthened on purpose. This is a call of its own, so that other ops need no check.
struct SlowedCall {
  Call call;
  Slowing slowing;
};

/// An op that in its third play never ends, or throws.
struct StuckCall {
  Call call;
  program::Stuck how = program::Stuck::no;
  int rank = 0;  ///< of the world, for messages
  std::uint32_t plays = 0;
};

}  // namespace isoscale::executor::host
