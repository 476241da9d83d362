// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/predict/search.hpp"

#include "analysis/predict/forecast.hpp"
#include "analysis/predict/quick_estimate.hpp"
#include "analysis/predict/step_estimate.hpp"
#include "analysis_test.hpp"
#include "base/parallel.hpp"
#include "stack_samples.hpp"
#include "tests/support/unit_costs.hpp"
#include "workloads/stack/pipeline.hpp"

namespace isoscale::analysis {
namespace {

using workloads::Request;

const workloads::Workload& hybrid() { return workloads::find_workload("hybrid"); }

/// Returns the machine of some large GPU; `speed` scales its arithmetic against all else.
simulate::Machine machine_of(double capacity, double speed = 1, int node_ranks = 4) {
  simulate::Machine machine{.name = "made up", .source = "test"};
  machine.processor = simulate::Processor{.matrix = {{.type = program::DType::bf16,
                                                      .peak = 300e12 * speed,
                                                      .reached = {{1e6, 0.02}, {1e12, 0.7}}}},
                                          .launch = 2e-6};
  machine.memory = simulate::DeviceMemory{
      .capacity = capacity, .bandwidth = 2e12, .reached = {{1e3, 0.1}, {1e8, 0.8}}};
  machine.network =
      simulate::Network{.node_ranks = node_ranks,
                        .inside = {.bandwidth = 300e9, .reached = 0.8, .latency = 2e-6},
                        .across = {.bandwidth = 25e9, .reached = 0.9, .latency = 5e-6},
                        .ports_per_rank = 1};
  return machine;
}

Request base_of(workloads::Options options, int layers = 8) {
  options.try_emplace("optimizer", "adam");
  options.try_emplace("elementwise", "on");
  Request base{.model = workloads::test_model("hidden=1024 ffn=4096 heads=16 head_size=64 layers=8 "
                                              "sequence=512 vocabulary=8192"),
               .precision = program::Precision::bf16,
               .options = std::move(options)};
  base.model.layers = layers;
  return base;
}

/// Returns a question about the work of `base` on `machine`. Without a machine, a node has 4 ranks.
predict::Question question_of(const Request& base, const simulate::Machine& machine = {},
                              const std::vector<std::string>& fixed = {}) {
  predict::Question question;
  question.workload = &hybrid();
  question.base = base;
  question.fixed = fixed;
  question.machine = machine;
  question.node_ranks = machine.network ? machine.network->node_ranks : 4;
  return question;
}

/// Device bytes of the rank that needs most, and the most that live there at one time.
struct DeviceBytes {
  double all = 0, live = 0;
};
DeviceBytes device_bytes_of(const Request& request) {
  const program::ProgramSet set = hybrid().build(request);
  const auto device = static_cast<std::size_t>(program::Space::device);
  DeviceBytes most;
  for (const program::RankProgram& program : set.programs) {
    const program::Facts facts = program::facts(program, set.mesh);
    most.all = std::max(most.all, static_cast<double>(program.arena_bytes[device]));
    most.live = std::max(most.live, static_cast<double>(facts.peak_live[device].value()));
  }
  return most;
}
double device_bytes(const Request& request) { return device_bytes_of(request).all; }

std::vector<double> sorted_bytes(const std::vector<Request>& requests) {
  std::vector<double> bytes = mapped(requests, device_bytes);
  std::ranges::sort(bytes);
  return bytes;
}

std::string text_of(const Request& request) {
  std::string text = mesh::to_string(request.mesh);
  for (const char* const key :
       {"microbatch", "microbatches", "schedule", "v", "zero", "recompute", "sequence_parallel"}) {
    const auto found = request.options.find(key);
    if (found == request.options.end() || found->second == "off") continue;
    text += std::string{" "} + key + "=" + found->second;
  }
  return text;
}

TEST(SearchSpaceTest, KeepsRanksBatchAndNodes) {
  const Request base = base_of({{"batch", "32"}});
  std::set<std::string> seen;
  for (const Request& request : predict::search_space(question_of(base), 16).requests) {
    EXPECT_EQ(request.mesh.size(), 16);
    EXPECT_LE(request.mesh.tp, 4);
    EXPECT_EQ(request.mesh.cp, 1);
    if (request.mesh.ep > 1) {  // several copies of sharded states, each on the ranks of a node
      EXPECT_EQ(request.mesh.tp * request.mesh.ep, 4);
      EXPECT_GT(request.mesh.dp, 1);
      EXPECT_EQ(request.options.at("zero"), "3");
    }
    EXPECT_EQ(request.options.at("batch"), "32");
    EXPECT_EQ(request.mesh.dp * request.mesh.ep * std::stoi(request.options.at("microbatch")) *
                  std::stoi(request.options.at("microbatches")),
              32);
    EXPECT_TRUE(seen.insert(text_of(request)).second) << text_of(request) << " twice";
    // Interleaved stages of 8 layers over pp=4 have two layers each: v=2 alone divides them.
    EXPECT_FALSE(request.mesh.pp == 4 && request.options.contains("v") &&
                 request.options.at("v") == "4");
  }
  // tp=2,dp=2,pp=4 on batch 32: each replica has 16 samples.
  for (const char* const wanted :
       {"dp=2,tp=2,pp=4 microbatch=1 microbatches=16 schedule=1f1b zero=0 recompute=none",
        "dp=2,tp=2,pp=4 microbatch=4 microbatches=4 schedule=interleaved v=2 zero=3 recompute=full",
        "dp=2,tp=2,pp=4 microbatch=2 microbatches=8 schedule=zb-h1 zero=1 recompute=selective",
        "dp=2,tp=2,pp=4 microbatch=2 microbatches=8 schedule=1f1b zero=1 recompute=none "
        "sequence_parallel=on",
        "dp=16 microbatch=2 microbatches=1 schedule=1f1b zero=2 recompute=none",
        "dp=2,tp=2,pp=2,ep=2 microbatch=1 microbatches=8 schedule=1f1b zero=3 recompute=none",
        "dp=4,ep=4 microbatch=2 microbatches=1 schedule=1f1b zero=3 recompute=full"}) {
    EXPECT_TRUE(seen.contains(wanted)) << wanted << "\nsome: " << *seen.begin();
  }
}

TEST(SearchSpaceTest, KeepsWhatIsFixed) {
  const workloads::Options fixed =
      workloads::options_of("zero=1 schedule=interleaved v=2 microbatch=2 sequence_parallel=on");
  Request base = base_of(fixed);
  base.options["batch"] = "32";
  predict::Question question = question_of(base, {}, {"zero", "schedule", "v", "microbatch"});
  question.mesh = {{mesh::Axis::tp, 8}};
  const predict::SearchSpace space = predict::search_space(question, 16);
  ASSERT_FALSE(space.requests.empty());
  for (const Request& request : space.requests) {
    EXPECT_EQ(request.mesh.tp, 8);  // beyond a node, for it was asked for
    for (const auto& [key, value] : fixed) EXPECT_EQ(request.options.at(key), value) << key;
  }
}

TEST(SearchSpaceTest, DropsAnAssumedGatherButNotOneThatIsFixed) {
  const Request base = base_of({{"batch", "16"}, {"zero", "1"}, {"gather", "next_step"}});
  const auto stages = [&](const std::vector<std::string>& fixed) {
    std::set<std::string> zeros;
    for (const Request& request : predict::search_space(question_of(base, {}, fixed), 4).requests) {
      zeros.insert(request.options.at("zero"));
    }
    return zeros;
  };
  EXPECT_EQ(stages({}), (std::set<std::string>{"0", "1", "2", "3"}));
  EXPECT_EQ(stages({"gather"}), (std::set<std::string>{"1", "2"}));
}

/// Laws are fitted, and a stage of few layers may come out with a time below 0.
TEST(PipelineLaw, CountsTimesBelowZeroAsNone) {
  const workloads::stack::Pipeline pipeline{.stages = 1, .microbatches = 2, .layers = {1}};
  const auto seconds = [&](double forward) {
    const predict::StagePasses passes{.forward = forward, .backward = 4e-3};
    return predict::pipeline_seconds(pipeline, passes, passes, 0);
  };
  EXPECT_NEAR(seconds(2e-3), 2 * 6e-3, 1e-9);
  EXPECT_NEAR(seconds(-1e-3), 2 * 4e-3, 1e-9);
}

/// The passes of a stage whose GEMMs take a nanosecond for each FLOP.
predict::StagePasses passes_of(const program::Outline& outline, int microbatches) {
  predict::StagePasses passes;
  for (const program::OutlineOp& op : outline.ops) {
    const double seconds = op.flop / microbatches * 1e-9;
    const bool is_forward = op.place.phase == program::Phase::forward;
    (is_forward ? passes.forward : passes.backward) += seconds;
    // The products of attention, which come in batches, have no weights.
    if (is_forward && op.gemm.batch == 1) passes.weight_gradient += seconds;
  }
  return passes;
}

/// Returns a step in nanoseconds: one for each FLOP of a GEMM, `message` for each exchange between
/// stages, and none for all else.
double simulated(const simulate::Classes& classes, std::int64_t message) {
  simulate::Costs costs = simulate::unit_costs(classes.outline);
  for (std::size_t i = 0; i < costs.tables.size(); ++i) {
    const auto& ops = classes.outline.outlines[i].ops;
    for (std::size_t op = 0; op < ops.size(); ++op) {
      if (ops[op].kind != program::OpKind::exchange) continue;
      costs.tables[i][op] = units::Nanoseconds{message};
    }
  }
  return 1e9 * simulate::play_classes(classes, costs, {}, simulate::Record::steps).seconds;
}

/// Expects the law to give the time of programs with these options, to a nanosecond.
void expect_law(workloads::Options options, int stages, int microbatches, std::int64_t message) {
  const int v = options.contains("v") ? std::stoi(options.at("v")) : 1;
  const Request request =
      workloads::scaled(workloads::small(stages * v, microbatches, std::move(options)),
                        {.pp = stages}, workloads::Scaling::strong);
  const simulate::Classes classes = simulate::classes_of(hybrid().build(request));
  const auto passes = [&](int stage) { return passes_of(classes.outline.of(stage), microbatches); };
  EXPECT_NEAR(
      1e9 * predict::pipeline_seconds(workloads::stack::pipeline_of(request), passes(0),
                                      passes(stages - 1), 1e-9 * static_cast<double>(message)),
      simulated(classes, message), 2)
      << text_of(request);
}

/// With equal stages, and with the output projection on the last one. stack_test.cpp shows that
/// these programs have the bubble of the literature.
TEST(PipelineLaw, IsTheTimeOfSimulatedPrograms) {
  for (const char* const schedule : {"schedule=gpipe", "schedule=1f1b", "schedule=interleaved v=2",
                                     "schedule=interleaved v=3", "schedule=zb-h1"}) {
    workloads::Options options = workloads::options_of(schedule);
    for (const char* const vocabulary : {"off", "on"}) {
      SCOPED_TRACE(vocabulary);
      options["vocabulary"] = vocabulary;
      for (const auto& [stages, microbatches] :
           {std::pair{2, 4}, {2, 10}, {3, 6}, {3, 12}, {4, 12}, {8, 16}}) {
        expect_law(options, stages, microbatches, 7);
      }
    }
    // The formula also holds for fewer microbatches than stages, if messages take no time.
    options["vocabulary"] = "off";
    if (options.contains("v")) continue;
    for (const auto& [stages, microbatches] : {std::pair{4, 2}, {8, 3}}) {
      expect_law(options, stages, microbatches, 0);
    }
  }
}

predict::StepEstimate whole_step(const Request& request, const simulate::Machine& machine,
                                 double capacity = infinite) {
  return predict::estimate_step({hybrid(), machine, simulate::packed(request.mesh.size(), 4),
                                 predict::Detail::time, predict::Ranks::by_class, capacity},
                                request);
}

TEST(QuickEstimateTest, ComesCloseToWholePrograms) {
  const simulate::Machine machine = machine_of(80e9);
  Request base = base_of({{"batch", "32"}, {"vocabulary", "on"}, {"sequence_parallel", "off"}}, 16);
  base.model = workloads::test_model(
      "hidden=4096 ffn=16384 heads=32 head_size=128 layers=16 "
      "sequence=2048 vocabulary=51200");
  const predict::Question question = question_of(base, machine);
  std::vector<Request> requests = predict::search_space(question, 16).requests;
  predict::QuickEstimate quick{question};
  quick.learn(requests);
  const auto hybrids = std::ranges::stable_partition(
      requests, [](const Request& request) { return request.mesh.ep == 1; });
  std::mt19937_64 random{7};
  for (int i = 0; i < 80; ++i) {  // at last those that shard states over ep
    const std::size_t plain = requests.size() - hybrids.size();
    const Request& request =
        i < 60 ? requests[random() % plain] : hybrids[random() % hybrids.size()];
    SCOPED_TRACE(text_of(request));
    const predict::StepEstimate whole = whole_step(request, machine);
    EXPECT_LT(std::abs(quick.seconds(request) / whole.seconds() - 1), 0.15);
    // Whole programs find out where an estimate is too small; a layout whose estimate is too large
    // is dropped.
    EXPECT_LT(quick.largest_stage(request).bytes / whole.memory.device - 1,
              predict::search_memory_slack);
  }
}

TEST(QuickEstimateTest, HasTheMemoryOfWholePrograms) {
  struct Case {
    const char* model;
    int layers, ranks;
    workloads::Options options;
    workloads::Trainer trainer = workloads::Trainer::none;
  };
  const workloads::Options of_llama{
      {"batch", "32"}, {"vocabulary", "on"}, {"sequence_parallel", "on"}};
  const std::vector<Case> cases{
      {"gpt-1.3b", 24, 16, {{"batch", "64"}, {"vocabulary", "on"}}},
      {"llama3-8b", 16, 8, of_llama},
      {"llama3-8b", 16, 8, of_llama, workloads::Trainer::fused_attention},
      {"llama3-70b", 12, 16, {{"batch", "32"}, {"vocabulary", "off"}}},
      {"gpt-175b", 8, 32, {{"batch", "64"}, {"vocabulary", "on"}, {"optimizer", "sgd"}}},
      {"gpt-125m", 12, 8, {{"batch", "64"}, {"vocabulary", "on"}}}};
  std::mt19937_64 random{5};
  for (const Case& one : cases) {
    Request base = base_of(one.options, one.layers);
    base.model = workloads::load_model(one.model);
    base.model.layers = one.layers;
    base.trainer = one.trainer;
    const predict::Question question = question_of(base, machine_of(80e9, 1, 8));
    const predict::SearchSpace space = predict::search_space(question, one.ranks);
    std::vector<Request> drawn;
    for (int i = 0; i < 30; ++i) drawn.push_back(space.requests[random() % space.requests.size()]);
    predict::QuickEstimate quick{question};
    quick.learn(drawn);
    // Above what its program takes, and below what lives in it: gaps are no business of estimates.
    std::vector<DeviceBytes> known(drawn.size());
    base::parallel_for(drawn.size(), [&](std::size_t i) { known[i] = device_bytes_of(drawn[i]); });
    for (std::size_t i = 0; i < drawn.size(); ++i) {
      SCOPED_TRACE(one.model + (": " + text_of(drawn[i])));
      EXPECT_LT(quick.largest_stage(drawn[i]).bytes / known[i].all - 1,
                predict::search_memory_slack);
      EXPECT_LT(1 - quick.largest_stage(drawn[i]).bytes / known[i].live, 0.30);
    }
  }
}

TEST(WholeStepTest, IsNotPlayedWhereItDoesNotFit) {
  const simulate::Machine machine = machine_of(80e9);
  const Request base = base_of({{"batch", "32"}}, 16);
  const Request request = predict::search_space(question_of(base), 16).requests.front();
  const auto played = [&](double capacity) { return whole_step(request, machine, capacity); };
  const double bytes = played(infinite).memory.device;
  EXPECT_EQ(played(bytes).seconds(), played(infinite).seconds());
  EXPECT_TRUE(std::isinf(played(bytes - 1).seconds()));
  EXPECT_EQ(played(bytes - 1).memory.device, bytes);
}

TEST(SearchTest, FindsTheBestThatThereIs) {
  std::mt19937_64 random{11};
  const auto one_of = [&](const std::vector<std::string>& values) {
    return values[random() % values.size()];
  };
  for (int round = 0; round < (every_case() ? 6 : 2); ++round) {
    Request base = base_of({{"batch", one_of({"16", "32"})},
                            {"vocabulary", one_of({"on", "off"})},
                            {"zero", one_of({"0", "1", "3"})},
                            {"recompute", one_of({"none", "selective", "full"})}},
                           static_cast<int>(4 + 4 * (random() % 2)));
    base.model.hidden = 512 * static_cast<int>(1 + random() % 3);
    base.model.ffn = 4 * base.model.hidden;
    base.model.head_size = base.model.hidden / base.model.heads;
    // Which option is searched beside mesh, microbatch and schedule changes.
    const std::vector<std::string> fixed{one_of({"zero", "recompute"})};
    predict::Question question = question_of(base, {}, fixed);
    const predict::SearchSpace space = predict::search_space(question, 8);
    // The machine has room for all, or for so little that half do not fit.
    const std::vector<double> bytes = sorted_bytes(space.requests);
    const double capacity = random() % 2 == 0 ? 80e9 : bytes[bytes.size() / 2];
    question.machine = machine_of(capacity, 0.25 * static_cast<double>(1 + random() % 8));
    const predict::SearchResult found = predict::search(question, 8);
    ASSERT_FALSE(found.best.empty());
    // Seconds of all that fit, each by its whole program, without any search.
    std::vector<double> all(space.requests.size());
    base::parallel_for(all.size(), [&](std::size_t i) {
      all[i] = whole_step(space.requests[i], question.machine, capacity).seconds();
    });
    std::erase_if(all, [](double one) { return std::isinf(one); });
    std::ranges::sort(all);
    EXPECT_LE(found.best.front().step_time, all.front() * 1.0005)
        << text_of(found.best.front().request);
    EXPECT_EQ(found.looked_at, static_cast<int>(space.requests.size()) + space.impossible);
    EXPECT_EQ(found.best.size(), std::min<std::size_t>(10, all.size()));
    for (std::size_t i = 0; i < found.best.size(); ++i) {
      const predict::Candidate& candidate = found.best[i];
      EXPECT_LE(candidate.step_time, all[i] * 1.1) << i << ": " << text_of(candidate.request);
      EXPECT_LE(device_bytes(candidate.request), capacity) << text_of(candidate.request);
      EXPECT_EQ(candidate.why_not.empty(), i == 0) << candidate.why_not;
      if (i == 0) continue;
      EXPECT_GE(candidate.step_time, found.best[i - 1].step_time * 0.999);
    }
  }
}

/// A search and a prediction place the experts' ranks alike.
TEST(SearchTest, PredictsTheTimeOfSpreadExperts) {
  const Request base = base_of(
      {{"batch", "32"}, {"elementwise", "off"}, {"experts", "4"}, {"expert_placement", "spread"}});
  predict::Question question = question_of(base, machine_of(80e9));
  question.mesh = {{mesh::Axis::ep, 4}};
  const predict::SearchResult found = predict::search(question, 16);
  ASSERT_FALSE(found.best.empty());
  for (const predict::Candidate& candidate : found.best) {
    EXPECT_NEAR(candidate.step_time,
                predict::sheet_step_time(hybrid(), candidate.request, question.machine, 4),
                1e-3 * candidate.step_time)
        << text_of(candidate.request);
  }
}

/// The memory that the smallest candidate needs by the words of the refusal, in their unit.
double smallest_refused(const predict::Question& question, int ranks) {
  const std::string text =
      testing_support::usage_error([&] { (void)predict::search(question, ranks); });
  const std::size_t at = text.find(") needs ");
  EXPECT_NE(at, std::string::npos) << text;
  return at == std::string::npos ? 0 : std::stod(text.substr(at + 8));
}

TEST(SearchTest, RefusesOnlyWhereTheSmallestCandidateDoesNotFit) {
  Request base = base_of({{"batch", "16"}, {"zero", "3"}, {"recompute", "full"}}, 16);
  const double least = sorted_bytes(predict::search_space(question_of(base), 4).requests).front();
  constexpr double mib = 1024 * 1024;
  for (const double capacity : {1e6, least / 2, least - 1}) {
    const double said = smallest_refused(question_of(base, machine_of(capacity)), 4) * mib;
    EXPECT_GE(said, 0.998 * capacity);  // three digits are printed
    EXPECT_NEAR(said, least, 0.02 * least) << "with " << capacity;
  }
  EXPECT_FALSE(predict::search(question_of(base, machine_of(least)), 4).best.empty());
}

/// Thousands of layouts whose programs are long, none of which comes near the memory: a handful is
/// built (of more, this test ran for ten minutes).
TEST(SearchTest, RefusesALargeModelWithoutBuildingAllOfIt) {
  Request base = base_of({{"batch", "1536"}, {"vocabulary", "on"}});
  base.model = workloads::load_model("gpt-175b");
  EXPECT_NEAR(smallest_refused(question_of(base, machine_of(80e9, 1, 8)), 8), 393, 20);  // GiB
}

/// In a program of few layers what is kept from step to step lies where activations were: the
/// memory of many layers must not be read off its arena.
TEST(QuickEstimateTest, CountsStatesThatGrowWithLayers) {
  const simulate::Machine machine = machine_of(80e9);
  Request base = base_of({{"batch", "16"}, {"vocabulary", "on"}}, 64);
  base.model = workloads::test_model(
      "hidden=4096 ffn=14336 heads=16 head_size=256 layers=64 "
      "sequence=8192 vocabulary=8192");
  const predict::Question question = question_of(base, machine);
  const predict::SearchSpace space = predict::search_space(question, 8);
  predict::QuickEstimate quick{question};
  quick.learn(space.requests);
  for (const Request& request : space.requests) {
    const auto is = [&](const char* key, const char* value) {
      return request.options.at(key) == value;
    };
    if (!is("zero", "3") || !is("recompute", "full") || !is("schedule", "1f1b") ||
        !is("microbatch", "1") || request.mesh.dp != 4) {
      continue;
    }
    EXPECT_NEAR(quick.largest_stage(request).bytes / device_bytes(request), 1, 0.25)
        << text_of(request);
  }
}

/// A step whose costs are made up; they sum to `seconds`.
predict::StepEstimate step_with(double gemm, double tp, double bubble, double bytes) {
  const double seconds = gemm + tp + bubble;
  const efficiency::StepCosts costs{.gemm = gemm, .transfer = {{Axis::tp, tp}}, .bubble = bubble};
  predict::StepEstimate estimate{
      .simulated = seconds, .memory = {.all = bytes, .device = bytes}, .work = 1};
  estimate.breakdown = {.compute = gemm, .transfer = tp, .bubble = bubble, .step = seconds};
  estimate.loss = efficiency::StepLoss{.step = seconds, .work = 1, .ranks = 8, .costs = costs};
  estimate.loss->traced = estimate.loss->slowest = seconds;
  return estimate;
}

TEST(WhyNotTest, NamesWhatCostsMore) {
  const predict::StepEstimate first = step_with(3.0, 0.5, 0.15, 1e9);
  const auto why = [&](double gemm, double tp, double bubble, double bytes) {
    return predict::why_not(step_with(gemm, tp, bubble, bytes), first);
  };
  EXPECT_EQ(why(3.0, 0.81, 0.15, 1e9), "310 ms more tp transfer");
  EXPECT_EQ(why(3.0, 0.5, 0.5, 1e9), "bubble 12% against 4%");  // 0.5 of 4.0 s, 0.15 of 3.65 s
  // A cost that it spends less on is not why it loses.
  EXPECT_EQ(why(3.9, 0.1, 0.15, 1e9), "900 ms more GEMMs");
  // Both have to be said: neither is four fifths.
  EXPECT_THAT(why(3.4, 0.8, 0.15, 1e9), StartsWith("400 ms more GEMMs, 300 ms more tp"));
  EXPECT_THAT(why(3.0, 0.5, 0.15, 2e9), HasSubstr("954 MiB"));
}

}  // namespace
}  // namespace isoscale::analysis
