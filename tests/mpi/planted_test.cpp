// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// Errors planted in programs are found by comparing with one rank, and named. Each leaves messages
// and collectives in step on all ranks, so that what goes wrong is the result and nothing hangs.

#include "tests/mpi/twin_cases.hpp"

namespace isoscale::runner {
namespace {

using mesh::Axis;
using namespace program;  // NOLINT: the ops
using Set = program::ProgramSet;

struct Plant {
  std::string_view name;
  mesh::AxisSet needs;  ///< axes that must be longer than 1 for the error to be one
  /// Changes the programs; returns how many ops it changed.
  int (*into)(Set& set);
  /// Is caught in types that round so much that one wrong element in a bucket is lost, too.
  bool is_coarse = false;
};

/// A group of one: the collective does nothing, and streams and waits stay as they are.
constexpr mesh::AxisSet nobody_else = Axis::cp;

template <class Payload>
std::vector<Op*> ops_with(std::vector<Op>& ops) {
  std::vector<Op*> found;
  for (Op& op : ops) {
    if (std::holds_alternative<Payload>(op.payload)) found.push_back(&op);
  }
  return found;
}

/// Lets `change` see one op of the first program after the other, until it changes one.
template <class Payload, class Change>
int in_first(std::vector<Op>& ops, const Change& change) {
  for (Op* op : ops_with<Payload>(ops)) {
    if (change(*op, std::get<Payload>(op->payload))) return 1;
  }
  return 0;
}

/// The all-reduces of a step whose group varies along `axis`.
std::vector<Collective*> all_reduces(RankProgram& program, Axis axis) {
  std::vector<Collective*> found;
  for (Op* op : ops_with<Collective>(program.step().ops)) {
    auto& collective = std::get<Collective>(op->payload);
    if (program::kind_of(op->payload) == OpKind::all_reduce && collective.axes.contains(axis)) {
      found.push_back(&collective);
    }
  }
  return found;
}

enum class Which : std::uint8_t { every, last };

/// Lets all-reduces of each stage along an axis do nothing: the last is for dp the last bucket, for
/// tp the last of backward.
template <Axis axis, Which which>
int skip(Set& set) {
  int changed = 0;
  for (RankProgram& program : set.programs) {
    auto found = all_reduces(program, axis);
    if (which == Which::last && !found.empty()) found.erase(found.begin(), found.end() - 1);
    for (Collective* collective : found) collective->axes = nobody_else;
    changed += static_cast<int>(found.size());
  }
  return changed;
}

/// Moves the begin and the end of a bucket of every stage by some elements.
int move_bucket(Set& set, std::size_t bucket, std::int64_t begin, std::int64_t end) {
  for (RankProgram& program : set.programs) {
    Collective& one = *all_reduces(program, Axis::dp).at(bucket);
    for (Slice* slice : {&one.send, &one.receive}) {
      slice->offset += static_cast<std::uint64_t>(begin);
      slice->count += static_cast<std::uint64_t>(end - begin);
    }
  }
  return static_cast<int>(set.programs.size());
}

bool is_weight_gradient(const Op& op, const Gemm& gemm) {
  return op.place.phase == Phase::backward && gemm.transpose_a == program::Transpose::yes;
}

/// A weight-gradient GEMM multiplies another microbatch's activation.
int wrong_microbatch_in_gemm(Set& set) {
  RankProgram& program = set.programs.front();
  return in_first<Gemm>(program.step().ops, [&](const Op& op, Gemm& gemm) {
    if (!is_weight_gradient(op, gemm)) return false;
    Slice& mine = gemm.a.slice;
    return in_first<Gemm>(program.step().ops, [&](const Op& other, const Gemm& of_other) {
             const Slice& theirs = of_other.a.slice;
             // Buffers that live one after the other may share storage: those hold the right data.
             if (!is_weight_gradient(other, of_other) || other.place.layer != op.place.layer ||
                 other.place.microbatch != op.place.microbatch + 1 || theirs.count != mine.count ||
                 program.buffers[theirs.buffer].offset == program.buffers[mine.buffer].offset) {
               return false;
             }
             mine = theirs;
             return true;
           }) == 1;
  });
}

/// Calls change(first, second) for two sends of the first stage whose storage differs.
template <class Change>
int for_two_sends(Set& set, const Change& change) {
  RankProgram& program = set.programs.front();
  Slice* before = nullptr;
  for (Op* op : ops_with<Exchange>(program.step().ops)) {
    for (program::Transfer& transfer : std::get<Exchange>(op->payload).transfers) {
      if (transfer.direction != program::Direction::send) continue;
      Slice* const first = std::exchange(before, &transfer.slice);
      if (first == nullptr ||
          program.buffers[first->buffer].offset == program.buffers[transfer.slice.buffer].offset) {
        continue;
      }
      change(*first, transfer.slice);
      return 1;
    }
  }
  return 0;
}

/// Every tp rank fills a weight with the columns (rows) of the first.
int weight_of_the_neighbour(Set& set) {
  RankProgram& program = set.programs.front();
  return in_first<Fill>(program.setup.ops, [&](Op&, Fill& fill) {
    auto& step = fill.shard.steps.tp;
    if (program.buffers[fill.dst.buffer].role != Role::weight) return false;
    return std::exchange(step, 0) != 0;
  });
}

/// A forward GEMM reads its weight matrix from one row further on.
int shifted_weight_in_gemm(Set& set) {
  RankProgram& program = set.programs.front();
  return in_first<Gemm>(program.step().ops, [&](const Op& op, Gemm& gemm) {
    const program::Buffer& buffer = program.buffers[gemm.b.slice.buffer];
    if (op.place.phase != Phase::forward || buffer.role != Role::weight ||
        gemm.b.slice.offset + gemm.b.row_stride + gemm.b.slice.count > buffer.count) {
      return false;
    }
    gemm.b.slice.offset += gemm.b.row_stride;
    return true;
  });
}

/// Each rank continues the residual from the first tp rank's columns (gathered outputs only).
int residual_of_the_neighbour(Set& set) {
  return in_first<Gemm>(set.programs.front().step().ops,
                        [](Op&, Gemm& gemm) { return std::exchange(gemm.c.slice.step, 0) != 0; });
}

/// Changes the first update.
template <class Change>
int in_first_update(Set& set, const Change& change) {
  return in_first<Update>(set.programs.front().step().ops, [&](Op&, Update& update) {
    change(update);
    return true;
  });
}

/// The first of several updates writes one element of the next one's weights.
int shifted_update(Set& set) {
  if (ops_with<Update>(set.programs.front().step().ops).size() < 2) return 0;
  return in_first_update(set, [](Update& update) { update.weight.offset += 1; });
}

int update_one_short(Set& set) {
  return in_first_update(set, [](Update& update) {
    for (Slice* slice :
         {&update.weight, &update.master, &update.gradient, &update.moment1, &update.moment2}) {
      if (slice->buffer != program::no_buffer) slice->count -= 1;
    }
  });
}

/// A microbatch's weight gradient replaces those before it.
int lost_accumulation(Set& set) {
  return in_first<Gemm>(set.programs.front().step().ops, [](const Op& op, Gemm& gemm) {
    if (!is_weight_gradient(op, gemm) || op.place.microbatch == 0 || gemm.beta != 1) return false;
    gemm.beta = 0;
    return true;
  });
}

constexpr std::array plants{
    Plant{"every tp all-reduce skipped", Axis::tp, skip<Axis::tp, Which::every>, true},
    Plant{"the first tp all-reduce skipped", Axis::tp,
          [](Set& set) {
            const auto found = all_reduces(set.programs.front(), Axis::tp);
            if (found.empty()) return 0;
            found.front()->axes = nobody_else;
            return 1;
          }},
    Plant{"the last tp all-reduce skipped", Axis::tp, skip<Axis::tp, Which::last>, true},
    Plant{"every dp all-reduce skipped", Axis::dp, skip<Axis::dp, Which::every>, true},
    Plant{"one dp bucket skipped", Axis::dp, skip<Axis::dp, Which::last>, true},
    Plant{"bucket one element short", Axis::dp,
          [](Set& set) { return move_bucket(set, 0, 0, -1); }},
    // The last element of the first bucket is reduced with the second one too.
    Plant{"bucket begins one element early", Axis::dp,
          [](Set& set) { return move_bucket(set, 1, -1, 0); }},
    // The first bucket takes the first element of the second, before that one is complete.
    Plant{"bucket boundary one element late", Axis::dp,
          [](Set& set) { return move_bucket(set, 0, 0, 1) + move_bucket(set, 1, 1, 0); }},
    Plant{"wrong microbatch in a GEMM", {}, wrong_microbatch_in_gemm},
    Plant{"wrong microbatch sent", Axis::pp,
          [](Set& set) {
            return for_two_sends(set, [](auto& first, auto& second) { first = second; });
          },
          true},
    Plant{"two sends swapped", Axis::pp,
          [](Set& set) { return for_two_sends(set, [](auto& a, auto& b) { std::swap(a, b); }); },
          true},
    Plant{"weight of the neighbour", Axis::tp, weight_of_the_neighbour},
    Plant{"weight one row further on", {}, shifted_weight_in_gemm},
    Plant{"update one element further on", {}, shifted_update, true},
    Plant{"update one element short", {}, update_one_short},
    Plant{"update forgotten",
          {},
          [](Set& set) { return in_first_update(set, [](auto& update) { update.rate = 0; }); },
          true},
    Plant{"gradient not accumulated", {}, lost_accumulation},
};
/// For outputs that are gathered.
constexpr Plant gathered_plant{"residual of the neighbour", Axis::tp, residual_of_the_neighbour};

bool fits(const Plant& plant, const mesh::Shape& mesh) {
  return std::ranges::all_of(mesh::all_axes, [&](mesh::Axis axis) {
    return mesh[axis] > 1 || !plant.needs.contains(axis);
  });
}

std::vector<mesh::Shape> planted_meshes(int ranks) {
  if (ranks == 4) return {{.tp = 2, .dp = 2}, {.tp = 2, .pp = 2}, {.dp = 2, .pp = 2}};
  return {{.tp = 2, .dp = ranks / 4, .pp = 2}};
}

workloads::Request planted_twin(const mesh::Shape& mesh, Precision precision,
                                const workloads::Options& options) {
  workloads::Request base{.model = gated_model(), .precision = precision, .options = options};
  base.options.merge(workloads::options_of("microbatch=2 microbatches=8"));
  const workloads::Workload& hybrid = workloads::find_workload("hybrid");
  return hybrid.twin(hybrid.scale(base, mesh, workloads::Scaling::strong));
}

TEST(TwinTolerance, OfNarrowTypesGrowsWithTheDepthUpToHalf) {
  const auto of = [](Precision precision, int layers, int tp) {
    workloads::Request twin = planted_twin({.tp = tp}, precision, {});
    twin.model.layers = layers;
    return measure::tolerance(twin);
  };
  EXPECT_DOUBLE_EQ(of(Precision::bf16, 11, 4), 0.1);
  EXPECT_NEAR(of(Precision::bf16, 96, 8), 0.03 * std::sqrt(96 * 2.0), 1e-12);
  EXPECT_NEAR(of(Precision::f16, 96, 8), 0.006 * std::sqrt(96 * 2.0), 1e-12);
  EXPECT_DOUBLE_EQ(of(Precision::bf16, 4096, 8), 0.5);
  EXPECT_DOUBLE_EQ(of(Precision::f32, 96, 8), 1e-4);
  EXPECT_DOUBLE_EQ(of(Precision::tf32, 96, 8), 1e-2);
}

/// Collective. Streams are folded: what a wrong program computes is then always the same.
class Planted : public testing::TestWithParam<Precision> {
 protected:
  void expect_all_caught(const std::vector<Plant>& planted, const workloads::Options& options) {
    const workloads::Workload& hybrid = workloads::find_workload("hybrid");
    const double allowed = measure::tolerance(GetParam());
    for (const mesh::Shape& mesh : planted_meshes(ranks_.world.size())) {
      const workloads::Request twin = planted_twin(mesh, GetParam(), options);
      const program::ProgramSet good = hybrid.build(twin);
      const measure::Verdict before = verify(good, twin);
      EXPECT_TRUE(before.ok) << before.detail;
      for (const Plant& plant : planted) {
        if (!fits(plant, mesh)) continue;
        const std::string where = fmt::format("{} on {}", plant.name, mesh::to_string(mesh));
        program::ProgramSet bad = good;
        EXPECT_GT(plant.into(bad), 0) << where << ": nowhere to plant it";
        const measure::Verdict verdict = verify(bad, twin);
        EXPECT_FALSE(verdict.ok) << where << ": " << verdict.detail;
        EXPECT_GT(verdict.difference.value_or(0), allowed) << where;
        EXPECT_THAT(verdict.detail, testing::ContainsRegex(
                                        "layer[0-9]+[.].*(weight|gradient)|output|input.gradient"))
            << where;
        ++caught_;
      }
    }
  }

  [[nodiscard]] bool is_wide() const {
    return GetParam() == Precision::f64 || GetParam() == Precision::f32;
  }
  [[nodiscard]] measure::Verdict verify(const program::ProgramSet& set,
                                        const workloads::Request& twin) {
    return measure::verify_programs(set, workloads::find_workload("hybrid"), twin,
                                    is_wide() ? *ranks_.folded : *ranks_.emulating, ranks_.world);
  }

  Ranks ranks_;
  int caught_ = 0;
};

TEST_P(Planted, ErrorsAreCaught) {
  std::vector<Plant> planted{plants.begin(), plants.end()};
  workloads::Options other{{"optimizer", "adam"}};
  if (is_wide()) {
    other["schedule"] = "gpipe";
  } else {
    std::erase_if(planted, [](const Plant& plant) { return !plant.is_coarse; });
  }
  for (const workloads::Options& options : {workloads::Options{{"schedule", "1f1b"}}, other}) {
    caught_ = 0;
    expect_all_caught(planted, options);
    EXPECT_GE(caught_, static_cast<int>(planted.size()));
  }
}

TEST_P(Planted, ErrorsAreCaughtInGatheredOutputs) {
  if (!is_wide()) GTEST_SKIP() << "the type rounds more than this error changes";
  expect_all_caught({gathered_plant}, {{"tp_output", "gather"}});
  EXPECT_GE(caught_, 1);
}

/// Loses 0.2% of the first stage's gradients, about as much as one of 500 replicas adds to them.
class LosesGradients final : public executor::Executor {
 public:
  explicit LosesGradients(executor::Executor& plain) : plain_(plain) {}
  [[nodiscard]] const executor::Description& describe() const override { return plain_.describe(); }
  [[nodiscard]] executor::SessionPtr prepare(const Set& set, const comm::Communicator& point,
                                             const executor::SessionOptions& options) override {
    Set bad = set;
    for (Op* op : ops_with<Gemm>(bad.programs.front().step().ops)) {
      auto& gemm = std::get<Gemm>(op->payload);
      if (is_weight_gradient(*op, gemm)) gemm.alpha *= 0.998;
    }
    return plain_.prepare(bad, point, options);
  }

 private:
  executor::Executor& plain_;
};

TEST_P(Planted, ErrorsThatRoundingHidesAreCaughtInF32) {
  LosesGradients executor{is_wide() ? *ranks_.folded : *ranks_.emulating};
  for (const mesh::Shape& mesh : planted_meshes(ranks_.world.size())) {
    const workloads::Request twin = planted_twin(mesh, GetParam(), {{"schedule", "1f1b"}});
    const measure::Verdict verdict =
        measure::verify_twin(workloads::find_workload("hybrid"), twin, executor, ranks_.world);
    EXPECT_FALSE(verdict.ok) << verdict.detail;
    EXPECT_THAT(verdict.detail,
                HasSubstr(GetParam() == Precision::f64 ? "in f64, 1e-11" : "in f32, 1e-04"));
  }
}

INSTANTIATE_TEST_SUITE_P(Precisions, Planted,
                         testing::Values(Precision::f64, Precision::f32, Precision::tf32,
                                         Precision::f16, Precision::bf16, Precision::fp8),
                         [](const auto& precision) {
                           return std::string{program::name(precision.param)};
                         });

/// A comparison of nothing is no verification.
TEST(Verification, NeedsSomethingToCompare) {
  const Ranks ranks;
  const workloads::Workload& hybrid = workloads::find_workload("hybrid");
  const workloads::Request twin =
      planted_twin(planted_meshes(ranks.world.size()).front(), Precision::f64, {});
  program::ProgramSet set = hybrid.build(twin);
  for (program::RankProgram& program : set.programs) {
    std::erase_if(program.observables, [](const program::Observable& observable) {
      return observable.name == "layer1.qkv.weight";
    });
  }
  const measure::Verdict partly =
      measure::verify_programs(set, hybrid, twin, *ranks.folded, ranks.world);
  EXPECT_FALSE(partly.ok);
  EXPECT_THAT(partly.detail, HasSubstr("layer1.qkv.weight"));
  for (program::RankProgram& program : set.programs) program.observables.clear();
  EXPECT_FALSE(measure::verify_programs(set, hybrid, twin, *ranks.folded, ranks.world).ok);
}

}  // namespace
}  // namespace isoscale::runner
