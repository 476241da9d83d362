// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <filesystem>

#include "analysis/predict/forecast.hpp"
#include "analysis/predict/system_file.hpp"
#include "analysis_test.hpp"
#include "predict_samples.hpp"
#include "simulate/op_time.hpp"
#include "workloads/api/toml_files.hpp"
#include "workloads/registry_and_mesh_choice.hpp"

namespace isoscale::analysis {
namespace {

using settings::PredictCommand;
using simulate::Machine;
using simulate::TimedCommunication;
using testing_support::expect_words;
using testing_support::Words;

predict::Question asked(const PredictCommand& command) {
  return predict::question_of(command, samples::plain_sheet());
}

/// All-reduces of 8 bytes among so many ranks, which took so long.
TimedCommunication timed(int members, int nodes, double seconds) {
  return {.kind = program::OpKind::all_reduce,
          .members = members,
          .nodes = nodes,
          .samples = {{8, seconds}}};
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  return text.replace(text.find(from), from.size(), to);  // throws if there is no such part
}

std::string refusal_of(const PredictCommand& command) {
  return testing_support::refusal([&] {
    const predict::Question question = asked(command);
    for (const int ranks : question.ranks) (void)predict::request_at(question, ranks);
  });
}

TEST(Question, OfASheetIsWhatTheCommandSays) {
  PredictCommand command = samples::plain_command();
  command.mesh = {{Axis::tp, 2}};
  command.settings = {{"batch", "128"}, {"gemm", "2x,memory=3x"}, {"latency", "0.5x"}};
  command.baseline = 16;
  const predict::Question question = asked(command);
  EXPECT_EQ(question.workload->name, "hybrid");
  EXPECT_EQ(question.base.options.at("batch"), "128");
  EXPECT_EQ(question.fixed, std::vector<std::string>{"batch"});
  EXPECT_THAT(question.what_if, ElementsAre(FieldsAre("gemm=2x,memory=3x", SizeIs(2)),
                                            FieldsAre("latency=0.5x", SizeIs(1))));
  EXPECT_EQ(question.node_ranks, 8);
  EXPECT_EQ(question.baseline, 16);
  EXPECT_FALSE(question.fit.has_value());
  const workloads::Request request = predict::request_at(question, 16);
  EXPECT_EQ(request.mesh, (mesh::Shape{.tp = 2, .dp = 8}));
  EXPECT_EQ(request.options.at("microbatch"), "4");
  EXPECT_EQ(request.options.at("microbatches"), "4");
  command.node_ranks = 4;
  EXPECT_EQ(asked(command).node_ranks, 4);
  EXPECT_EQ(asked(command).machine.network->node_ranks, 4);
}

TEST(Question, RefusesWhatItCannotAnswer) {
  const auto with = [](const char* key, const char* value) {
    PredictCommand command = samples::plain_command();
    command.settings.emplace_back(key, value);
    return command;
  };
  PredictCommand dp = samples::plain_command("dp"), weak = samples::plain_command();
  dp.mesh = {{Axis::tp, 2}};
  weak.best = true;
  weak.scaling = workloads::Scaling::weak;
  // tests/cli/predict_test.py has models, meshes and workloads that are refused.
  const std::vector<std::pair<PredictCommand, Words>> cases{
      {with("bucked", "1MiB"), {"'bucked'", "'bucket'"}},
      {with("bucket", "much"), {"--set", "much"}},
      {with("batch", "128"), {"twice"}},
      {with("gemm", "2"), {"--set", "0.001x"}},
      {dp, {"--mesh tp=2", "no axis tp"}},
      {weak, {"--best", "weak"}}};
  for (const auto& [command, words] : cases) expect_words(refusal_of(command), words);
  // A sheet needs a model for what a model shapes, and tiles are not of these.
  PredictCommand tiles = samples::plain_command("tiles");
  tiles.model.reset();
  tiles.settings.clear();
  tiles.ranks = {4};
  EXPECT_EQ(refusal_of(tiles), "");
  PredictCommand search = samples::plain_command();
  search.best = true;
  EXPECT_EQ(asked(search).meshes, predict::Meshes::searched);
  search.mesh = {{Axis::tp, 2}, {Axis::pp, 2}};
  EXPECT_EQ(asked(search).meshes, predict::Meshes::searched);
}

TEST(Question, OptionsOfTheSoftwareGiveWayToTheUsers) {
  Machine sheet = samples::plain_sheet();
  sheet.software.name = "Trainer";
  sheet.software.options = {{"zero", "1"}, {"grad_dtype", "bf16"}, {"gather", "next_step"}};
  struct Row {
    std::pair<std::string, std::string> asked;
    std::vector<std::string> kept, left_out;
  };
  for (const Row& row : {Row{{"strategy", "funnel"}, {}, {"zero", "grad_dtype"}},
                         Row{{"offload", "weights"}, {"zero", "grad_dtype"}, {"gather"}},
                         Row{{"compression", "topk"}, {}, {"zero", "grad_dtype"}},
                         Row{{"zero", "2"}, {"zero", "grad_dtype", "gather"}, {}}}) {
    SCOPED_TRACE(row.asked.first);
    PredictCommand command = samples::plain_command();
    command.settings.push_back(row.asked);
    const predict::Question question = predict::question_of(command, sheet);
    EXPECT_EQ(question.base.options.at(row.asked.first), row.asked.second);
    for (const std::string& key : row.kept) EXPECT_TRUE(question.base.options.contains(key)) << key;
    for (const std::string& key : row.left_out) {
      EXPECT_FALSE(question.base.options.contains(key)) << key;
      EXPECT_THAT(question.warnings, Contains(HasSubstr("Trainer uses " + key + "=")));
    }
    EXPECT_NO_THROW((void)predict::request_at(question, 8));
  }
}

TEST(Question, OfASheetHasTheBatchOfTheModel) {
  PredictCommand command = samples::plain_command();
  command.settings.clear();
  command.model = workloads::load_model("gpt-175b");
  EXPECT_EQ(asked(command).base.options.at("batch"), "1536");
  EXPECT_THAT(asked(command).assumed, HasSubstr("batch=1536"));
  command.model = workloads::load_model("llama3-70b");  // none is published
  EXPECT_EQ(asked(command).base.options.at("batch"), "1024");
  command.settings = {{"batch", "512"}};
  EXPECT_EQ(asked(command).base.options.at("batch"), "512");
  EXPECT_THAT(asked(command).assumed, Not(HasSubstr("batch")));
  command.settings.clear();
  command.scaling = workloads::Scaling::weak;
  EXPECT_FALSE(asked(command).base.options.contains("batch"));
}

TEST(Question, KeepsTpAndPpAlongACurve) {
  PredictCommand command = samples::plain_command("hybrid");
  command.mesh.clear();
  command.ranks = {4, 8, 64};
  const predict::Question question = asked(command);
  EXPECT_EQ(predict::request_at(question, 8).mesh, (mesh::Shape{.tp = 2, .dp = 2, .pp = 2}));
  EXPECT_EQ(predict::request_at(question, 64).mesh, (mesh::Shape{.tp = 2, .dp = 16, .pp = 2}));
  command.ranks = {4};
  EXPECT_EQ(predict::request_at(asked(command), 4).mesh, (mesh::Shape{.tp = 2, .dp = 2}));
  command.best = true;
  EXPECT_TRUE(asked(command).mesh.empty());
}

TEST(Question, TakesANetworkFromAnotherMachine) {
  predict::Question question = asked(samples::plain_command());
  question.node_ranks = 2;
  question.machine.network.reset();
  const TimedCommunication inside = timed(2, 1, 1e-6), across = timed(4, 2, 1e-5);
  question.machine.measured.communication = {inside, across};
  question.fit = predict::ModelFit{};
  predict::use_network(samples::plain_sheet(), "plain", question);
  EXPECT_DOUBLE_EQ(question.fit->known.fit, 0.05);
  ASSERT_TRUE(question.machine.network);
  EXPECT_EQ(question.machine.network->node_ranks, 2);
  EXPECT_THAT(question.machine.measured.communication,
              ElementsAre(Field(&TimedCommunication::nodes, 1)));
  EXPECT_THAT(question.network, HasSubstr("plain"));
  EXPECT_THROW(predict::use_network({}, "nothing", question), base::UsageError);
  // From another run it takes what was measured between nodes.
  question = asked(samples::plain_command());
  question.node_ranks = 2;
  question.fit = predict::ModelFit{};
  question.fit->known.fit = 0.03;
  Machine other;
  other.measured.communication = {across, inside};
  other.noise.launch = 0.04;
  predict::use_network(other, "other.h5", question);
  EXPECT_DOUBLE_EQ(question.fit->known.fit, 0.05);
  EXPECT_FALSE(question.machine.network);
  EXPECT_THAT(question.machine.measured.communication,
              ElementsAre(Field(&TimedCommunication::members, 4)));
  EXPECT_TRUE(question.warnings.empty());
  question.node_ranks = 8;
  predict::use_network(other, "other.h5", question);
  EXPECT_THAT(question.warnings, ElementsAre(HasSubstr("2 ranks on each")));
}

TEST(Question, OfASheetTakesTheLinksBetweenNodesFromAnotherSheet) {
  predict::Question question = asked(samples::plain_command());
  const simulate::Network own = *question.machine.network;
  question.machine.software.spread = 0.12;
  Machine other = samples::plain_sheet();
  other.source = "another data sheet";
  other.network->inside.bandwidth *= 3;
  other.network->across.bandwidth *= 5;
  other.network->ports_per_rank = 0.125;
  other.network->collnet = simulate::SwitchReduction{.latency = 4e-6};
  other.network->node_ranks = 2;
  predict::use_network(other, "other", question);
  EXPECT_EQ(question.machine.network->inside.bandwidth, own.inside.bandwidth);
  EXPECT_EQ(question.machine.network->across.bandwidth, 5 * own.across.bandwidth);
  EXPECT_EQ(question.machine.network->ports_per_rank, 0.125);
  ASSERT_TRUE(question.machine.network->collnet);
  EXPECT_EQ(question.machine.network->collnet->latency, 4e-6);
  EXPECT_EQ(question.machine.network->algorithms.back(), simulate::Algorithm::collnet);
  EXPECT_EQ(question.machine.network->node_ranks, own.node_ranks);
  EXPECT_DOUBLE_EQ(question.machine.software.spread, 0.13);  // 12% and 5%
  EXPECT_THAT(question.parts, ElementsAre(FieldsAre(testing::_, question.source, testing::_),
                                          FieldsAre(testing::_, "other", "another data sheet")));
  other.network->collnet = std::nullopt;
  predict::use_network(other, "other", question);
  EXPECT_EQ(question.machine.network->algorithms, own.algorithms);
}

TEST(Question, OfASheetTakesWhatARunMeasuredBetweenNodes) {
  predict::Question question = asked(samples::plain_command());
  const simulate::GroupPlace inside{.members = 2, .nodes = 1, .node_members = 2};
  const simulate::GroupPlace across{.members = 16, .nodes = 2, .node_members = 8};
  const auto seconds = [&](const simulate::GroupPlace& place) {
    return simulate::collective_seconds(question.machine, program::OpKind::all_reduce, 8, place);
  };
  const double before = seconds(inside);
  Machine other;
  other.name = "cluster";
  other.noise.launch = 0.03;
  other.measured.communication = {timed(16, 2, 4e-3), timed(2, 1, 1)};
  predict::use_network(other, "other.h5", question);
  EXPECT_DOUBLE_EQ(seconds(inside), before);  // of the sheet
  EXPECT_DOUBLE_EQ(seconds(across), 4e-3);    // of the run
  EXPECT_DOUBLE_EQ(question.machine.software.spread, std::hypot(0.05, 0.03));
  EXPECT_THAT(question.warnings, ElementsAre(HasSubstr("other.h5 measured no messages")));
  EXPECT_THAT(question.network,
              AllOf(HasSubstr("as other.h5 (cluster) measured"), HasSubstr("3.0%")));
  EXPECT_EQ(question.parts[1].source, "measured");
  const predict::Prediction prediction = predict::predict(question);
  EXPECT_EQ(predict::prediction_json(prediction)["parts"][1]["from"], "other.h5");
  EXPECT_THAT(predict::render_text(prediction), HasSubstr("links between nodes: other.h5"));
}

Machine measured() {
  Machine machine{.name = "measured", .source = {}};
  machine.measured.gemms = {{.shape = {8, 8, 8, 1}, .seconds = 3e-6}};
  machine.measured.locals = {{.bytes = 64, .seconds = 2e-6}};
  // 1 us of latency, then 10 us and 1 us of bytes.
  machine.measured.communication = {
      {.members = 4, .nodes = 2, .samples = {{10, 2e-6}, {1e4, 11e-6}}, .latency = 1e-6},
      {.members = 2, .nodes = 1, .samples = {{0, 1e-6}, {1e4, 3e-6}}}};
  machine.measured.communication[0].bandwidth = 1e9;
  return machine;
}

Machine changed(const Machine& machine, const std::string& what_if) {
  return predict::changed(machine, predict::parse_what_if(what_if));
}

TEST(WhatIf, ReadsChangesThatAreMadeTogetherAndSaysWhatItWouldAccept) {
  const predict::WhatIf two = predict::parse_what_if("gemm=1.3x,latency=0.5x");
  EXPECT_EQ(two.title, "gemm=1.3x,latency=0.5x");
  EXPECT_THAT(two.changes, ElementsAre(FieldsAre(predict::machine_part("gemm"), 1.3),
                                       FieldsAre(predict::machine_part("latency"), 0.5)));
  for (const auto& [text, reason] : {std::pair{"link.iner=2x", "mean 'link.inter'"},
                                     {"gemm=2", "0.001x to 1000x"},
                                     {"gemm=0x", "be a factor"},
                                     {"gemm=-2x", "be a factor"},
                                     {"gemm=nanx", "be a factor"},
                                     {"gemm", "no factor"},
                                     {"gemm=2x,gemm=3x", "twice"},
                                     {"gemm=2x,", "unknown part"}}) {
    EXPECT_THAT(testing_support::refusal(predict::parse_what_if, text), HasSubstr(reason));
  }
}

TEST(WhatIf, ChangesASheet) {
  Machine before = samples::plain_sheet();
  before.network->collnet = simulate::SwitchReduction{.latency = 4e-6, .across_latency = 2e-6};
  const Machine after =
      changed(before, "link.inter=2x,link.intra=3x,latency=0.5x,gemm=1.5x,memory=4x");
  EXPECT_DOUBLE_EQ(after.network->across.bandwidth, 2e10);
  EXPECT_DOUBLE_EQ(after.network->inside.bandwidth, 3e11);
  EXPECT_DOUBLE_EQ(after.network->across.latency, 2.5e-6);
  EXPECT_DOUBLE_EQ(after.network->inside.latency, 0.5e-6);
  EXPECT_DOUBLE_EQ(after.network->collnet->latency, 2e-6);
  EXPECT_DOUBLE_EQ(after.network->collnet->across_latency, 1e-6);
  EXPECT_DOUBLE_EQ(after.processor->matrix.front().peak, 1.5e12);
  EXPECT_DOUBLE_EQ(after.memory->bandwidth, 4e18);
  EXPECT_DOUBLE_EQ(after.memory->capacity, 1e12);
}

TEST(WhatIf, ChangesWhatWasMeasuredByTheLinksItCrosses) {
  // Microseconds of both samples across nodes, then of both inside one; there the latency is not
  // fitted, and that of the smallest message counts.
  struct Case {
    const char* change;
    double across[2], inside[2];
  };
  for (const Case& at :
       {Case{"link.inter=2x", {1.5, 6}, {1, 3}}, Case{"link.intra=2x", {2, 11}, {1, 2}},
        Case{"latency=3x", {4, 13}, {3, 5}}}) {
    SCOPED_TRACE(at.change);
    const Machine after = changed(measured(), at.change);
    for (std::size_t i = 0; i < 2; ++i) {
      EXPECT_NEAR(after.measured.communication[0].samples[i].seconds, at.across[i] * 1e-6, 1e-18);
      EXPECT_NEAR(after.measured.communication[1].samples[i].seconds, at.inside[i] * 1e-6, 1e-18);
    }
  }
  const Machine inter = changed(measured(), "link.inter=2x");
  EXPECT_DOUBLE_EQ(*inter.measured.communication[0].bandwidth, 2e9);
  EXPECT_DOUBLE_EQ(*inter.measured.communication[0].latency, 1e-6);
  const Machine latency = changed(measured(), "latency=3x");
  EXPECT_DOUBLE_EQ(*latency.measured.communication[0].latency, 3e-6);
  const Machine faster = changed(measured(), "gemm=1.5x,memory=2x");
  EXPECT_NEAR(faster.measured.gemms[0].seconds, 2e-6, 1e-18);
  EXPECT_NEAR(faster.measured.locals[0].seconds, 1e-6, 1e-18);
}

TEST(WhatIf, RefusesPartsThatNobodyKnows) {
  Machine one_node = measured();
  one_node.measured.communication.erase(one_node.measured.communication.begin());
  EXPECT_THROW((void)changed(one_node, "link.inter=2x"), base::UsageError);
  EXPECT_NO_THROW((void)changed(one_node, "link.intra=2x"));
  for (const char* const change : {"gemm=2x", "memory=2x", "latency=2x", "link.intra=2x"}) {
    EXPECT_THROW((void)changed({.name = "empty", .source = {}}, change), base::UsageError)
        << change;
  }
}

const std::string sheet = R"(name = "Box"
source = "made up"
software = "jax"
[processor]
launch = 1e-6
[[processor.attention]]
kernel = "cudnn"
forward = 0.7
backward = 0.6
[[processor.matrix]]
types = ["f32", "tf32"]
peak = 1e12
reached = [[1e6, 0.5], [1e9, 0.8]]
[memory]
capacity = 16e9
bandwidth = 1e11
[network]
node_ranks = 4
ports_per_rank = 0.25
start = 1e-6
algorithms = ["ring", "multicast", "collnet"]
[network.inside]
bandwidth = 1e11
reached = 0.9
latency = 1e-6
chunk = 1e6
[network.across]
bandwidth = 1e10
reached = 0.8
latency = 5e-6
chunk = 1e5
[[network.tier]]
nodes = 32
share = 0.5
latency = 6e-6
[network.multicast]
reached = 0.7
latency = 2e-5
across_latency = 3e-5
[network.collnet]
reached = 0.75
latency = 4e-5
across_latency = 1e-6
most_nodes = 64
[noise]
rank = 0.01
straggler_share = 0.25
straggler_size = 0.2
)";

TEST(SystemFile, ReadsEveryNumber) {
  const simulate::Machine machine = predict::parse_system(sheet, "box.toml");
  EXPECT_EQ(machine.name, "Box");
  const auto reached = ElementsAre(FieldsAre(1e6, 0.5), FieldsAre(1e9, 0.8));
  EXPECT_THAT(
      machine.processor->matrix,
      ElementsAre(FieldsAre(program::DType::f32, program::ComputeMode::native, 1e12, reached),
                  FieldsAre(program::DType::f32, program::ComputeMode::tf32, 1e12, reached)));
  EXPECT_THAT(machine.processor->attention, ElementsAre(FieldsAre("cudnn", 0.7, 0.6)));
  EXPECT_EQ(machine.software.name, predict::load_software("jax").name);
  EXPECT_EQ(machine.network->node_ranks, 4);
  EXPECT_THAT(machine.network->across, FieldsAre(1e10, 0.8, 5e-6, 1e5));
  EXPECT_THAT(machine.network->tiers, ElementsAre(FieldsAre(32, 0.5, 6e-6)));
  EXPECT_THAT(machine.network->multicast,
              Optional(FieldsAre(ElementsAre(FieldsAre(1, 0.7)), 2e-5, 3e-5, 0)));
  EXPECT_THAT(machine.network->collnet,
              Optional(FieldsAre(ElementsAre(FieldsAre(1, 0.75)), 4e-5, 1e-6, 64)));
  EXPECT_FALSE(machine.host);
  EXPECT_TRUE(machine.measured.empty());
  // A quarter of the draws is that of stragglers, and the smallest a deviation of others.
  const std::vector<double>& draws = machine.noise.draws;
  EXPECT_EQ(std::ranges::count(draws, 0.2) * 4, std::ssize(draws));
  EXPECT_LT(draws.front(), -0.02);
}

TEST(SystemFile, RefusesWithLineKeyAndReason) {
  const auto expect = [](const std::string& toml, const Words& words) {
    expect_words(testing_support::refusal(predict::parse_system, toml, "box.toml"), words);
  };
  const auto with = [](const std::string& from, const std::string& to) {
    return replaced(sheet, from, to);
  };
  expect(with("capacity = 16e9\n", ""), {"box.toml:14", "memory.capacity", "missing"});
  expect(with("bandwidth = 1e11\n[network]", "bandwidth = -3\n[network]"),
         {"box.toml:16", "memory.bandwidth", "-3"});
  expect(with("launch = 1e-6", "launch = nan"), {"box.toml:5", "processor.launch"});
  expect(with("launch = 1e-6", "launch = \"fast\""), {"box.toml:5", "must be a number"});
  expect(with("reached = 0.9", "reached = 1.2"), {"box.toml:24", "network.inside.reached", "1.2"});
  expect(with("node_ranks = 4", "node_ranks = 2.5"), {"box.toml:18", "whole number"});
  expect(with("capacity", "capasity"), {"memory.capacity", "missing"});
  expect(with("start = 1e-6", "start = 1e-6\nstrat = 1"), {"box.toml:21", "network.strat"});
  expect(with("[1e9, 0.8]", "[1e5, 0.8]"), {"box.toml:13", "ascend"});
  expect(with("[1e9, 0.8]", "[1e9, 1.8]"), {"box.toml:13", "1.8"});
  expect(with("\"tf32\"", "\"tf33\""), {"box.toml:11", "tf33", "tf32"});
  expect(with("kernel =", "kernal ="), {"box.toml:6", "processor.attention.kernel", "missing"});
  expect(with("\"jax\"", "\"jaxx\""), {"unknown software", "'jax'"});
  expect(with("\"multicast\"", "\"tree\""), {"network.multicast", "algorithms"});
  expect(with("\"collnet\"", "\"tree\""), {"network.collnet", "algorithms"});
  expect(with("reached = 0.75\n", ""), {"network.collnet.reached", "missing"});
  expect(with("[network.across]", "[network.acros]"), {"network.across", "missing"});
  expect(with("straggler_size = 0.2\n", ""), {"noise.straggler_share", "straggler_size"});
  expect(with("straggler_share = 0.25", "straggler_share = 0.0001"),
         {"straggler_share", "0.00025"});
  expect("base = \"h1\"\n", {"box.toml:1", "base"});
  expect("name = ", {"box.toml:1", "TOML"});
  expect("", {"name", "missing"});
}

TEST(SystemFile, EverySystemOfOursIsRead) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator{ISOSCALE_SYSTEMS}) {
    if (entry.path().extension() != ".toml") continue;
    const simulate::Machine machine = predict::load_system(entry.path().string());
    EXPECT_TRUE(names.insert(machine.name).second) << machine.name;
    const std::string by_name = entry.path().stem().string();
    EXPECT_TRUE(predict::is_system(by_name));
    EXPECT_EQ(predict::load_system(by_name).name, machine.name);
  }
  EXPECT_EQ(names.size(), 10U);
}

TEST(SystemFile, ListsTheKeysThatItReads) {
  std::map<std::string, bool> needed;
  for (const predict::SheetKey& one : predict::system_keys()) needed[one.key] = one.needed;
  for (const char* const key :
       {"memory.capacity", "network.multicast.latency", "network.collnet.across_latency",
        "processor.attention.kernel", "processor", "memory", "network", "network.inside",
        "network.across", "network.algorithms", "processor.matrix", "processor.matrix.types",
        "network.multicast.reached", "network.collnet.reached"}) {
    EXPECT_TRUE(needed.at(key)) << key;
  }
  for (const char* const key : {"network.collnet", "processor.units", "noise.launch", "overlap",
                                "software", "memory.reached", "processor.matrix.reached",
                                "processor.attention", "network.tier", "network.protocol"}) {
    EXPECT_FALSE(needed.at(key)) << key;
  }
}

const std::string profile = R"(name = "Trainer"
source = "made up"
attention = "flash"
accumulate = 0.75
spread = 0.2
[traffic]
softmax = 2
[host]
op = 9e-5
bucket = 2e-4
step = 0.01
gemm = 2e-5
[options]
zero = "1"
)";

TEST(SoftwareFile, ReadsEveryNumber) {
  const simulate::Software software = predict::parse_software(profile, "trainer.toml");
  EXPECT_EQ(software.name, "Trainer");
  EXPECT_EQ(software.attention, "flash");
  EXPECT_EQ(software.accumulate, 0.75);
  EXPECT_EQ(software.spread, 0.2);
  EXPECT_EQ(software.traffic, (std::vector<simulate::OfKind>{{program::OpKind::softmax, 2}}));
  EXPECT_EQ(software.host_op, 9e-5);
  EXPECT_EQ(software.host_bucket, 2e-4);
  EXPECT_EQ(software.host_step, 0.01);
  EXPECT_EQ(software.host, (std::vector<simulate::OfKind>{{program::OpKind::gemm, 2e-5}}));
  EXPECT_THAT(software.options, ElementsAre(std::pair{"zero", "1"}));
}

/// A profile that states no spread has no measured steps behind it, and neither has a sheet without
/// a profile.
TEST(SoftwareFile, WithoutASpreadHasTheWidestInterval) {
  const std::string text = replaced(profile, "spread = 0.2\n", "");
  simulate::Machine machine = samples::plain_sheet();
  const auto spread_of = [&](const simulate::Software& software) {
    machine.software = software;
    const predict::Question question = predict::question_of(samples::plain_command(), machine);
    EXPECT_EQ(question.warnings.size(), software.spread > 0 ? 0U : 1U);
    return question.machine.software.spread;
  };
  machine.processor->attention.push_back({.name = "flash"});
  EXPECT_EQ(spread_of(predict::parse_software(profile, "p.toml")), 0.2);
  EXPECT_EQ(spread_of(predict::parse_software(text, "p.toml")), 0.25);
  EXPECT_EQ(spread_of({}), 0.25);
  for (const workloads::Preset& preset : workloads::software_presets()) {
    EXPECT_LT(predict::load_software(preset.name).spread, 0.25) << preset.name;
  }
}

TEST(SoftwareFile, RefusesWithLineKeyAndReason) {
  const auto expect = [](const std::string& from, const std::string& to, const Words& words) {
    const std::string toml = replaced(profile, from, to);
    expect_words(testing_support::refusal(predict::parse_software, toml, "p.toml"), words);
  };
  expect("spread = 0.2", "spread = 0", {"p.toml:5", "spread", "0"});
  expect("softmax = 2", "softmx = 2", {"p.toml:7", "softmx", "softmax"});
  expect("op = 9e-5", "op = 90", {"p.toml:9", "host.op", "90"});
  expect("zero = \"1\"", "zero = 1", {"p.toml:14", "options.zero", "must be a string"});
  expect("spread", "spred", {"p.toml:5", "spred", "spread"});
  EXPECT_THAT(testing_support::refusal(predict::load_software, "nemo"), HasSubstr("nemo-2025"));
}

/// Each sheet has the kernel of the profile that it names, and each profile names known options.
TEST(SoftwareFile, EveryProfileOfOursIsReadAndListed) {
  std::set<std::string> names;
  for (const workloads::Preset& preset : workloads::software_presets()) {
    const simulate::Software software = predict::load_software(preset.name);
    EXPECT_TRUE(names.insert(software.name).second) << software.name;
    EXPECT_GT(software.spread, 0) << software.name;
    EXPECT_GT(software.most_ranks, 0) << software.name;
    const auto& known = workloads::find_workload("hybrid").options;
    for (const auto& [key, value] : software.options) {
      const auto spec = std::ranges::find(known, key, &workloads::OptionSpec::key);
      ASSERT_NE(spec, known.end()) << software.name << ": " << key;
      EXPECT_NO_THROW(workloads::validate(*spec, value)) << software.name << ": " << key;
    }
  }
  EXPECT_EQ(names.size(), 5U);
  EXPECT_THAT(mapped(predict::software_keys(), &predict::SheetKey::key),
              ElementsAre("accumulate", "attention", "host", "host.KIND", "host.bucket", "host.op",
                          "host.step", "logit_bytes", "most_ranks", "name", "options",
                          "options.KEY", "source", "spread", "traffic", "traffic.KIND"));
}

}  // namespace
}  // namespace isoscale::analysis
