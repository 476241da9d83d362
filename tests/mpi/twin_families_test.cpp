// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// Every mesh, schedule and option of a covering set computes what one rank computes.

#include "program/work_and_memory.hpp"
#include "runner/microbench/rank_and_pair_speeds.hpp"
#include "tests/mpi/twin_cases.hpp"
#include "workloads/stack/partitioning.hpp"

namespace isoscale::runner {
namespace {

using mesh::Shape;
using program::Precision;
using workloads::Options;
using workloads::options_of;

using Texts = std::vector<std::string>;  ///< of options

/// Points of a kind: each mesh with each way takes `runs` of the covering levels of what the way
/// leaves open. The models and `turns` take turns.
struct Family {
  std::string name;
  bool (*has)(const Shape& mesh);
  Texts ways;
  std::size_t runs = 2;
  std::size_t runs_on_many = runs;  ///< on more than four ranks; 0: one of every other way
  Texts turns{""};
  int sequence = 0;                   ///< 0: the model's
  std::vector<Precision> emulated{};  ///< played in these, narrow ones
  std::optional<double> least{};      ///< what rounding changes at least
};

Texts each_with(Texts ways, const std::string& more) {
  for (std::string& way : ways) way += " " + more;
  return ways;
}

/// Options by which the ranks of a tp group share rows.
Texts row_ways() {
  return each_with(
      {"sequence_parallel=on", "sequence_parallel=on chunks=2", "sequence_parallel=on chunks=4",
       "sequence_parallel=on ring=on", "sequence_parallel=on async_reduce=on", "chunks=2",
       "chunks=4", "async_reduce=on", ""},
      "tp_output=reduce stage_layers=nearest");
}

/// Their number has no divisor in common with those of ways, levels and models, so that every
/// combination occurs.
const Texts schedule_turns{"schedule=1f1b handover=whole",
                           "schedule=gpipe handover=scattered",
                           "schedule=interleaved handover=whole",
                           "schedule=zb-h1 handover=scattered",
                           "schedule=1f1b handover=scattered",
                           "schedule=gpipe handover=whole",
                           "schedule=interleaved handover=scattered",
                           "schedule=zb-h1 handover=whole",
                           "schedule=1f1b handover=whole",
                           "schedule=interleaved handover=scattered",
                           "schedule=zb-h1 handover=whole"};

/// Elementwise work, and what is recomputed of it and beside it.
const Texts layer_ways{"elementwise=on recompute=none", "elementwise=on recompute=selective",
                       "elementwise=on recompute=full", "elementwise=off recompute=selective",
                       "elementwise=off recompute=full"};

/// With and without dropped tokens, few and many experts for a token, experts that nobody comes to.
Texts routings() {
  return each_with({"experts=8 topk=2", "experts=8 topk=1 skew=400 schedule=gpipe",
                    "experts=8 topk=3 skew=80 capacity=1.25 overlap=off",
                    "experts=8 topk=2 skew=120 capacity=75% expert_batch=padded optimizer=adam",
                    "experts=8 topk=1 skew=1000 capacity=50% schedule=zb-h1 vocabulary=on",
                    "experts=16 topk=4 capacity=1.0 expert_batch=padded schedule=interleaved "
                    "handover=scattered input=pinned"},
                   "tp_output=reduce stage_layers=nearest");
}

bool is_plain(const Shape& mesh) { return mesh.cp * mesh.ep == 1; }
bool has_stages(const Shape& mesh) { return is_plain(mesh) && mesh.pp > 1; }
bool has_tensor_parts(const Shape& mesh) { return is_plain(mesh) && mesh.tp > 1; }
bool has_replicas(const Shape& mesh) { return is_plain(mesh) && mesh.dp > 1; }
bool has_no_experts(const Shape& mesh) { return mesh.ep == 1; }
bool has_parts(const Shape& mesh) { return mesh.ep == 1 && mesh.cp > 1; }
bool has_two_parts_of_replicas(const Shape& mesh) {
  return mesh.ep == 1 && mesh.cp == 2 && mesh.dp > 1;
}
bool shares_states(const Shape& mesh) { return mesh.ep > 1 && mesh.cp * mesh.dp > 1; }
bool shares_rows(const Shape& mesh) { return mesh.ep == 1 && mesh.dp == 1 && mesh.pp == 1; }

std::vector<Family> families() {
  using enum Precision;
  // With some microbatches for each of eight replicas.
  const std::string skewed = "partition=skewed:3 microbatches=96";
  auto parts = row_ways();
  parts.insert(parts.end() - 1, "tp_output=gather stage_layers=nearest");
  return {
      {.name = "plain", .has = is_plain, .ways = {""}, .runs = 12, .runs_on_many = 6},
      {.name = "schedules",
       .has = has_stages,
       .ways = {"schedule=gpipe stage_layers=nearest vocabulary=on",
                "schedule=1f1b handover=scattered input=pinned",
                "schedule=1f1b stage_layers=nearest tp_output=gather handover=scattered",
                "schedule=interleaved v=2", "schedule=interleaved v=3 overlap=off vocabulary=on",
                "schedule=interleaved v=2 stage_layers=nearest handover=scattered",
                "schedule=zb-h1", "schedule=zb-h1 vocabulary=on optimizer=adam tp_output=gather",
                "schedule=zb-h1 overlap=off handover=scattered stage_layers=nearest"},
       .runs = 1},
      {.name = "rows",
       .has = has_tensor_parts,
       .ways = row_ways(),
       .runs = 3,
       .runs_on_many = 1,
       .turns = schedule_turns,
       .sequence = 128},
      {.name = "parts_of_the_sequence",
       .has = has_parts,
       .ways = parts,
       .runs = 2,
       .runs_on_many = 1,
       .turns = schedule_turns,
       .sequence = 128},
      {.name = "layers", .has = is_plain, .ways = layer_ways},
      {.name = "shared_layers",
       .has = has_no_experts,
       .ways = {"sequence_parallel=on tp_output=reduce",
                "sequence_parallel=on chunks=2 vocabulary=on tp_output=reduce",
                "sequence_parallel=on ring=on schedule=zb-h1 tp_output=reduce",
                "chunks=2 optimizer=adam tp_output=reduce", "async_reduce=on vocabulary=on",
                "schedule=zb-h1 vocabulary=on", "schedule=zb-h1 tp_output=gather async_reduce=on",
                "schedule=interleaved v=2 handover=scattered"},
       .runs = 1,
       .turns = layer_ways},
      {.name = "zero",
       .has = has_replicas,
       .ways = {"zero=1", "zero=2", "zero=3", "zero=3 prefetch=0", "zero=1 gather=next_step",
                "zero=2 gather=next_step schedule=interleaved stage_layers=nearest",
                "zero=3 prefetch=3 schedule=interleaved stage_layers=nearest",
                "zero=2 schedule=zb-h1", "zero=3 schedule=zb-h1", "zero=2 reduces_in_flight=0",
                "zero=2 reduces_in_flight=3 schedule=zb-h1",
                "zero=3 reduces_in_flight=3 prefetch=3"},
       .runs = 3},
      {.name = "zero_and_parts",
       .has = has_two_parts_of_replicas,
       .ways = {"zero=1", "zero=2", "zero=3"}},
      {.name = "hybrid_sharding",
       .has = shares_states,
       .ways = {"zero=1", "zero=1 gather=next_step optimizer=adam", "zero=2", "zero=3",
                "zero=1 offload=optimizer optimizer=adam", "zero=3 schedule=zb-h1 overlap=off",
                "zero=1 " + skewed, "zero=1 partition=skewed:0.3 microbatches=96"},
       .runs = 2,
       .runs_on_many = 1},
      {.name = "offload",
       .has = is_plain,
       .ways = {"offload=weights", "offload=weights prefetch=0",
                "offload=weights offload_memory=managed", "offload=weights schedule=zb-h1",
                "offload=optimizer optimizer=adam",
                "offload=optimizer optimizer=adam offload_memory=managed"}},
      {.name = "offload_and_zero",
       .has = has_replicas,
       .ways = {"zero=1 offload=weights", "zero=2 offload=weights",
                "zero=1 offload=optimizer optimizer=adam",
                "zero=2 offload=optimizer optimizer=adam offload_memory=managed",
                "zero=3 offload=optimizer optimizer=adam"}},
      // All is sent, so that nothing is lost: that the largest are chosen is tested with the op.
      {.name = "replicas",
       .has = has_replicas,
       .ways = {"strategy=funnel overlap=off", "strategy=funnel overlap=off schedule=interleaved",
                "strategy=funnel overlap=off schedule=zb-h1", skewed + " schedule=interleaved",
                skewed + " schedule=zb-h1", "compression=topk compression_ratio=1"},
       .runs = 3},
      {.name = "partitions",
       .has = has_replicas,
       .ways = {skewed, "partition=skewed:0.3 microbatches=96",
                "partition=proportional microbatches=96"},
       .runs = 4},
      {.name = "narrow_gradients",
       .has = has_replicas,
       .ways = {"grad_dtype=bf16", "grad_dtype=f16", "grad_dtype=bf16 zero=1",
                "grad_dtype=bf16 zero=2", "grad_dtype=f16 zero=3"},
       .runs = 3,
       .least = 1e-5},
      {.name = "experts",
       .has = [](const Shape&) { return true; },
       .ways = routings(),
       .runs = 1,
       .runs_on_many = 0},
      {.name = "narrow", .has = is_plain, .ways = {""}, .emulated = {tf32, f16, bf16, fp8}},
      {.name = "narrow_layers",
       .has = is_plain,
       .ways = {""},
       .turns = layer_ways,
       .emulated = {bf16, fp8}},
      {.name = "narrow_moving_weights",
       .has = has_replicas,
       .ways = {"zero=3", "zero=3 recompute=full", "offload=weights"},
       .emulated = {fp8}},
      {.name = "narrow_rows",
       .has = shares_rows,
       .ways = row_ways(),
       .runs = 1,
       .sequence = 128,
       .emulated = {bf16, fp8}},
      {.name = "narrow_rows_of_fp8",
       .has = shares_rows,
       .ways = {row_ways().front(), "async_reduce=on sequence_parallel=on tp_output=reduce",
                "async_reduce=on tp_output=reduce"},
       .sequence = 128,
       .emulated = {fp8}},
      {.name = "narrow_rows_of_layers",
       .has = has_tensor_parts,
       .ways = {"sequence_parallel=on ring=on tp_output=reduce",
                "sequence_parallel=on chunks=2 tp_output=reduce", "chunks=4 tp_output=reduce"},
       .runs = 1,
       .turns = layer_ways,
       .sequence = 128,
       .emulated = {fp8}},
      {.name = "narrow_rows_of_moving_weights",
       .has = has_tensor_parts,
       .ways = {"zero=3 sequence_parallel=on ring=on tp_output=reduce",
                "zero=3 sequence_parallel=on chunks=2 schedule=zb-h1 tp_output=reduce",
                "offload=weights sequence_parallel=on ring=on tp_output=reduce",
                "offload=weights chunks=4 recompute=full tp_output=reduce"},
       .runs = 1,
       .sequence = 128,
       .emulated = {fp8}}};
}

/// A number of layers that stages divide, or that they do not where they may differ.
int layers_of(const workloads::Model& model, const Shape& mesh, const Options& way) {
  if (!way.contains("schedule") || way.contains("experts") || mesh.pp == 1) return model.layers;
  const int chunks = way.contains("v") ? std::stoi(way.at("v")) : 1;
  return 2 * mesh.pp * chunks - (way.contains("stage_layers") ? 1 : 0);
}

enum class Share : std::uint8_t { all, some };

/// Returns the cases of a family on so many ranks. Some of them are each of its ways once, on the
/// first mesh, and of all others one in five, spread over meshes, ways and levels.
std::vector<TwinCase> cases_of(const Family& family, int ranks, Share share) {
  std::vector<TwinCase> cases;
  const auto models = twin_models();
  const auto levels = covering_levels();
  const std::size_t runs = ranks > 4 ? family.runs_on_many : family.runs;
  std::size_t turn = 0, meshes = 0;
  for (const Shape& mesh : meshes_where(ranks, family.has)) {
    ++meshes;
    for (std::size_t number = 0; number < family.ways.size(); ++number) {
      const Options way = options_of(family.ways[number]);
      if (runs == 0 && (meshes + number) % 2 != 0) continue;
      for (std::size_t run = 0; run < std::max<std::size_t>(runs, 1); ++run, ++turn) {
        const bool is_chosen = (meshes == 1 && run == 0) || (meshes + number + run) % 5 == 0;
        if (share == Share::some && !is_chosen) continue;
        std::vector<TwinCase> found;
        for (std::size_t skipped = 0; found.empty() && skipped < models.size(); ++skipped) {
          // The number of the mesh lets every model meet every level in each family.
          const std::size_t model = (turn + 2 * meshes + skipped) % models.size();
          workloads::Request base{.model = models[model], .options = way};
          base.options.merge(options_of(family.turns[turn % family.turns.size()]));
          if (family.sequence > 0) base.model.sequence = family.sequence;
          if (family.name == "schedules" || family.name == "shared_layers") {
            base.model.layers = layers_of(base.model, mesh, way);
          }
          try {
            found = twin_case(mesh, base, Levels{levels[(turn + meshes) % levels.size()]});
          } catch (const base::UsageError& error) {  // the next model may have layers enough
            EXPECT_THAT(error.what(), HasSubstr("layers")) << family.name;
          }
        }
        EXPECT_FALSE(found.empty()) << family.name << ": no model for " << mesh::to_string(mesh);
        if (found.empty()) continue;
        // A faster rank each time: every replica has a speed of its own.
        for (int rank = 0; way.contains("partition") && rank < mesh.size(); ++rank) {
          found.front().request.speed_of_rank.push_back(rank + 1);
        }
        cases.push_back(found.front());
      }
    }
  }
  return cases;
}

class Twins : public testing::TestWithParam<Family> {};

TEST_P(Twins, EqualOneRank) {
  const Ranks ranks;
  const Family& family = GetParam();
  // Two ranks have few meshes; more play all of their cases where ISOSCALE_ALL_TWINS asks for it.
  const int size = ranks.world.size();
  const bool all = size <= 2 || std::getenv("ISOSCALE_ALL_TWINS") != nullptr;
  std::vector<TwinCase> cases = cases_of(family, size, all ? Share::all : Share::some);
  if (cases.empty()) GTEST_SKIP() << "so few ranks have no such mesh";
  for (TwinCase& point : cases) {
    if (family.emulated.empty()) expect_equal_to_one_rank(ranks, point, family.least);
    for (const Precision precision : family.emulated) {
      point.request.precision = precision;
      const measure::Verdict verdict = measure::verify_twin(
          workloads::find_workload("hybrid"), point.request, *ranks.emulating, ranks.world);
      EXPECT_TRUE(verdict.ok) << point.name << ": " << verdict.detail;
      // The check is not vacuous: narrow types do round.
      EXPECT_GT(verdict.difference.value_or(0), measure::tolerance(precision) / 100) << point.name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Families, Twins, testing::ValuesIn(families()),
                         [](const auto& family) { return family.param.name; });

TEST(TwinOptions, AreNotRefusedOnMoreRanksAndPartitionsAreUneven) {
  if (comm::Communicator::world().rank() != 0) return;  // the same on every rank
  for (const Family& family : families()) {
    for (const int ranks : {4, 8}) {
      for (const TwinCase& point : cases_of(family, ranks, Share::all)) {
        const auto twin = workloads::find_workload("hybrid").twin(point.request);
        if (!point.request.options.contains("partition") || ranks < 8 || twin.mesh.dp < 2) continue;
        const auto microbatches = workloads::stack::distribution_of(twin).microbatches;
        EXPECT_GT(std::set<int>(microbatches.begin(), microbatches.end()).size(), 1U) << point.name;
      }
    }
  }
}

TEST(TwinOptions, ElementwiseWorkIsSeen) {
  // With the option against a reference without, all differs.
  const Ranks ranks;
  const workloads::Workload& hybrid = workloads::find_workload("hybrid");
  for (TwinCase& point :
       twin_case({.dp = ranks.world.size()}, {.model = gated_model()}, Levels{0})) {
    workloads::Request twin = hybrid.twin(point.request);
    twin.options["elementwise"] = "on";
    const program::ProgramSet set = hybrid.build(twin);
    twin.options["elementwise"] = "off";
    EXPECT_FALSE(measure::verify_programs(set, hybrid, twin, *ranks.folded, ranks.world).ok);
  }
}

/// A virtual stage without layers passes activations and gradients on, also at both ends: there it
/// sends the input of the run, which stays, and the output, whose gradient it is itself.
TEST(StagesWithoutLayers, EqualOneRank) {
  const Ranks ranks;
  const int dp = ranks.world.size() > 2 ? 2 : 1, pp = ranks.world.size() / dp;
  const workloads::Workload& hybrid = workloads::find_workload("hybrid");
  // The two virtual stages of each rank have one layer each, but for the first two and the last.
  const auto expect_equal = [&](int first, int last, const std::string& options) {
    std::string list = fmt::format("{},2", first);
    for (int stage = 2; stage < 2 * pp - 1; ++stage) list += ",1";
    workloads::Request base{.model = gated_model(), .precision = Precision::f64, .options = {}};
    base.options = workloads::options_of("microbatch=2 microbatches=8 " + options);
    base.model.layers = pp - 1;
    if (!base.options.contains("stage_layers")) {
      base.options.merge(workloads::options_of("schedule=interleaved v=2"));
      base.options["stage_layers"] = fmt::format("{},{}", list, last);
      base.model.layers = first + 2 + (2 * pp - 3) + last;
    }
    const auto request = hybrid.scale(base, {.dp = dp, .pp = pp}, workloads::Scaling::strong);
    expect_equal_to_one_rank(ranks,
                             {.name = workloads::text_of(request.options), .request = request});
  };
  expect_equal(0, 0, "");
  expect_equal(0, 0, "vocabulary=on input=pinned");
  expect_equal(0, 1, "recompute=full elementwise=on");
  expect_equal(1, 0, "optimizer=adam");
  expect_equal(0, 0, "zero=3 vocabulary=on");
  expect_equal(0, 1, "offload=weights");
  expect_equal(0, 0, "strategy=funnel overlap=off input=pinned");
  expect_equal(0, 0, "stage_layers=lighter-ends vocabulary=on schedule=zb-h1");
  expect_equal(0, 0, "stage_layers=lighter-ends vocabulary=on schedule=gpipe input=pinned");
}

/// A proportional partition is made from these.
TEST(Speeds, AreOfTheLargestMultiplicationAndTheSameOnAllRanks) {
  const Ranks ranks;
  const workloads::Workload& hybrid = workloads::find_workload("hybrid");
  const Shape mesh{.dp = ranks.world.size()};
  const workloads::Request base{
      .model = gated_model(),
      .options = workloads::options_of("partition=proportional microbatch=1 microbatches=2")};
  const workloads::Request request = hybrid.scale(base, mesh, workloads::Scaling::weak);
  EXPECT_TRUE(microbench::partitions_by_speed(request));
  EXPECT_FALSE(microbench::partitions_by_speed(hybrid.scale(base, {}, workloads::Scaling::weak)));
  const program::ProgramSet one = microbench::largest_multiplication(hybrid.build(request));
  ASSERT_EQ(one.programs.size(), 1U);
  // Queries, keys and values: 32 tokens x 96 x (24 + 2 x 12 heads of 16).
  EXPECT_EQ(program::facts(one.programs[0], mesh).flop.value(), 2.0 * 32 * 96 * (24 + 2 * 12) * 16);
  const std::vector<double> speeds =
      microbench::measure_speeds(one, *ranks.folded, ranks.world, {});
  ASSERT_EQ(speeds.size(), static_cast<std::size_t>(mesh.dp));
  for (std::size_t rank = 0; rank < speeds.size(); ++rank) {
    EXPECT_GT(speeds[rank], 0);
    EXPECT_EQ(ranks.world.all_max(speeds[rank]), ranks.world.all_min(speeds[rank]));
  }
}

}  // namespace
}  // namespace isoscale::runner
