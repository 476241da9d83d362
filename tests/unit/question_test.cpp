// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/predict/question.hpp"

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "base/error.hpp"
#include "predict_samples.hpp"

namespace isoscale::analysis {
namespace {

using settings::PredictCommand;
using simulate::Machine;
using simulate::TimedCommunication;

predict::Question asked(const PredictCommand& command) {
  return predict::question_of(command, samples::plain_sheet());
}

/// The words in which `ask` refuses.
std::string refusal_of(const auto& ask) {
  try {
    ask();
  } catch (const base::UsageError& error) {
    return error.what();
  }
  return "accepted";
}

std::string refusal(const PredictCommand& command) {
  return refusal_of([&] {
    const predict::Question question = asked(command);
    for (const int ranks : question.ranks) (void)predict::request_at(question, ranks);
  });
}

/// True if `text` has all of `needles`.
bool says(const std::string& text, std::initializer_list<const char*> needles) {
  for (const char* const needle : needles) {
    if (text.find(needle) == std::string::npos) return false;
  }
  return true;
}

TEST(Question, OfASheetIsWhatTheCommandSays) {
  PredictCommand command = samples::plain_command();
  command.mesh = {{mesh::Axis::tp, 2}};
  command.settings = {{"batch", "128"}, {"gemm", "2x,memory=3x"}, {"latency", "0.5x"}};
  command.baseline = 16;
  const predict::Question question = asked(command);
  EXPECT_EQ(question.workload->name, "hybrid");
  EXPECT_EQ(question.base.options.at("batch"), "128");
  EXPECT_EQ(question.fixed, std::vector<std::string>{"batch"});
  ASSERT_EQ(question.what_if.size(), 2U);
  EXPECT_EQ(question.what_if[0].title, "gemm=2x,memory=3x");
  EXPECT_EQ(question.what_if[0].changes.size(), 2U);
  EXPECT_EQ(question.what_if[1].title, "latency=0.5x");
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
  const auto with = [](std::string key, std::string value) {
    PredictCommand command = samples::plain_command();
    command.settings.emplace_back(std::move(key), std::move(value));
    return refusal(command);
  };
  EXPECT_TRUE(says(with("bucked", "1MiB"), {"'bucked'", "did you mean 'bucket'"}));
  EXPECT_TRUE(says(with("link.intre", "2x"), {"did you mean 'link.int"}));
  EXPECT_TRUE(says(with("bucket", "much"), {"--set", "much"}));
  EXPECT_TRUE(says(with("batch", "128"), {"twice"}));
  EXPECT_TRUE(says(with("gemm", "2"), {"--set", "0.001x"}));
  // A sheet needs a model for what a model shapes, and tiles are not of these.
  PredictCommand command = samples::plain_command();
  command.model.reset();
  EXPECT_TRUE(says(refusal(command), {"--model", "gpt-175b"}));
  command.workload = "tiles";
  command.settings.clear();
  command.ranks = {4};
  EXPECT_EQ(refusal(command), "accepted");
  command = samples::plain_command();
  command.workload = "collectives";
  EXPECT_TRUE(says(refusal(command), {"--workload collectives", "no step"}));
  command = samples::plain_command();
  command.mesh = {{mesh::Axis::tp, 3}};
  EXPECT_TRUE(
      says(refusal(command), {"hybrid on 8 ranks", "divided by 3", "nearest mesh that works"}));
  command.workload = "dp";
  command.mesh = {{mesh::Axis::tp, 2}};
  EXPECT_TRUE(says(refusal(command), {"--mesh tp=2", "has no axis tp"}));
}

TEST(Question, OfASheetHasTheBatchOfTheModel) {
  PredictCommand command = samples::plain_command();
  command.settings.clear();
  command.model = workloads::load_model("gpt-175b");
  EXPECT_EQ(asked(command).base.options.at("batch"), "1536");
  EXPECT_NE(asked(command).assumed.find("batch=1536"), std::string::npos);
  command.model = workloads::load_model("llama3-70b");  // none is published
  EXPECT_EQ(asked(command).base.options.at("batch"), "1024");
  command.settings = {{"batch", "512"}};
  EXPECT_EQ(asked(command).base.options.at("batch"), "512");
  EXPECT_EQ(asked(command).assumed.find("batch"), std::string::npos);
  command.settings.clear();
  command.scaling = workloads::Scaling::weak;
  EXPECT_FALSE(asked(command).base.options.contains("batch"));
}

TEST(Question, KeepsTpAndPpAlongACurve) {
  PredictCommand command = samples::plain_command();
  command.workload = "hybrid";
  command.mesh.clear();
  command.ranks = {4, 8, 64};
  const predict::Question question = asked(command);
  EXPECT_EQ(predict::request_at(question, 8).mesh, (mesh::Shape{.tp = 2, .dp = 2, .pp = 2}));
  EXPECT_EQ(predict::request_at(question, 64).mesh, (mesh::Shape{.tp = 2, .dp = 16, .pp = 2}));
  command.ranks = {4};
  EXPECT_EQ(predict::request_at(asked(command), 4).mesh, (mesh::Shape{.tp = 2, .dp = 2}));
  // A search looks at all of them.
  command.best = true;
  EXPECT_TRUE(asked(command).mesh.empty());
}

TEST(Question, TakesANetworkFromAnotherMachine) {
  predict::Question question = asked(samples::plain_command());
  question.node_ranks = 2;
  question.machine.network.reset();
  question.machine.measured.communication = {
      {.kind = program::OpKind::all_reduce, .members = 2, .nodes = 1, .samples = {{8, 1e-6}}},
      {.kind = program::OpKind::all_reduce, .members = 4, .nodes = 2, .samples = {{8, 1e-5}}}};
  question.fit = predict::ModelFit{};
  predict::use_network(samples::plain_sheet(), "plain", question);
  EXPECT_DOUBLE_EQ(question.fit->known.fit, 0.05);
  ASSERT_TRUE(question.machine.network);
  EXPECT_EQ(question.machine.network->node_ranks, 2);
  ASSERT_EQ(question.machine.measured.communication.size(), 1U);
  EXPECT_EQ(question.machine.measured.communication[0].nodes, 1);
  EXPECT_NE(question.network.find("plain"), std::string::npos);
  simulate::Machine nothing;
  EXPECT_THROW(predict::use_network(nothing, "nothing", question), base::UsageError);
}

TEST(Question, TakesWhatAnotherRunMeasuredBetweenNodes) {
  predict::Question question = asked(samples::plain_command());
  question.node_ranks = 2;
  simulate::Machine other;
  other.measured.communication = {
      {.kind = program::OpKind::all_reduce, .members = 4, .nodes = 2, .samples = {{8, 1e-5}}},
      {.kind = program::OpKind::all_reduce, .members = 2, .nodes = 1, .samples = {{8, 1e-6}}}};
  question.fit = predict::ModelFit{};
  question.fit->known.fit = 0.03;
  other.noise.launch = 0.04;
  predict::use_network(other, "other.h5", question);
  EXPECT_DOUBLE_EQ(question.fit->known.fit, 0.05);
  EXPECT_FALSE(question.machine.network);
  ASSERT_EQ(question.machine.measured.communication.size(), 1U);
  EXPECT_EQ(question.machine.measured.communication[0].members, 4);
  EXPECT_TRUE(question.warnings.empty());
  question.node_ranks = 8;
  predict::use_network(other, "other.h5", question);
  ASSERT_EQ(question.warnings.size(), 1U);
  EXPECT_NE(question.warnings[0].find("2 ranks on each"), std::string::npos);
}

TEST(Question, RefusesASearchWithNothingToSearchFor) {
  PredictCommand command = samples::plain_command();
  command.best = true;
  EXPECT_EQ(asked(command).meshes, predict::Meshes::searched);
  command.mesh = {{mesh::Axis::tp, 2}, {mesh::Axis::pp, 2}};
  EXPECT_EQ(asked(command).meshes, predict::Meshes::searched);
  command.mesh = {{mesh::Axis::tp, 2}, {mesh::Axis::pp, 2}, {mesh::Axis::dp, 2}};
  EXPECT_TRUE(says(refusal(command), {"--best", "--mesh"}));
  command.mesh.clear();
  command.scaling = workloads::Scaling::weak;
  EXPECT_TRUE(says(refusal(command), {"--best", "weak"}));
}

Machine measured() {
  Machine machine{.name = "measured", .source = {}};
  machine.measured.gemms = {{.m = 8, .n = 8, .k = 8, .seconds = 3e-6}};
  machine.measured.locals = {{.bytes = 64, .seconds = 2e-6}};
  // 1 us of latency, then 10 us and 1 us of bytes.
  machine.measured.communication = {
      TimedCommunication{
          .members = 4,
          .nodes = 2,
          .samples = {{.bytes = 10, .seconds = 2e-6}, {.bytes = 1e4, .seconds = 11e-6}},
          .latency = 1e-6,
          .bandwidth = 1e9},
      TimedCommunication{
          .members = 2,
          .nodes = 1,
          .samples = {{.bytes = 0, .seconds = 1e-6}, {.bytes = 1e4, .seconds = 3e-6}}}};
  return machine;
}

TEST(WhatIf, ReadsChangesThatAreMadeTogether) {
  const predict::WhatIf one = predict::parse_what_if("link.inter=2x");
  EXPECT_EQ(one.title, "link.inter=2x");
  EXPECT_EQ(one.changes, (std::vector<predict::Change>{{predict::MachinePart::link_inter, 2}}));
  const predict::WhatIf two = predict::parse_what_if("gemm=1.3x,latency=0.5x");
  EXPECT_EQ(two.changes, (std::vector<predict::Change>{{predict::MachinePart::gemm, 1.3},
                                                       {predict::MachinePart::latency, 0.5}}));
}

TEST(WhatIf, SaysWhatItWouldAccept) {
  for (const auto& [text, reason] : {std::pair{"link.iner=2x", "did you mean 'link.inter'"},
                                     {"gemm=2", "from 0.001x to 1000x"},
                                     {"gemm=0x", "must be a factor"},
                                     {"gemm=-2x", "must be a factor"},
                                     {"gemm=nanx", "must be a factor"},
                                     {"gemm", "has no factor"},
                                     {"gemm=2x,gemm=3x", "twice"},
                                     {"gemm=2x,", "unknown part of a machine"}}) {
    EXPECT_TRUE(says(refusal_of([&] { (void)predict::parse_what_if(text); }), {reason})) << text;
  }
}

TEST(WhatIf, ChangesASheet) {
  const Machine base = samples::plain_sheet();
  const Machine after = predict::changed(
      base, predict::parse_what_if("link.inter=2x,link.intra=3x,latency=0.5x,gemm=1.5x,memory=4x"));
  EXPECT_DOUBLE_EQ(after.network->across.bandwidth, 2e10);
  EXPECT_DOUBLE_EQ(after.network->inside.bandwidth, 3e11);
  EXPECT_DOUBLE_EQ(after.network->across.latency, 2.5e-6);
  EXPECT_DOUBLE_EQ(after.network->inside.latency, 0.5e-6);
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
    const Machine after = predict::changed(measured(), predict::parse_what_if(at.change));
    for (std::size_t i = 0; i < 2; ++i) {
      EXPECT_NEAR(after.measured.communication[0].samples[i].seconds, at.across[i] * 1e-6, 1e-18);
      EXPECT_NEAR(after.measured.communication[1].samples[i].seconds, at.inside[i] * 1e-6, 1e-18);
    }
  }
  const Machine inter = predict::changed(measured(), predict::parse_what_if("link.inter=2x"));
  EXPECT_DOUBLE_EQ(*inter.measured.communication[0].bandwidth, 2e9);
  EXPECT_DOUBLE_EQ(*inter.measured.communication[0].latency, 1e-6);
  const Machine latency = predict::changed(measured(), predict::parse_what_if("latency=3x"));
  EXPECT_DOUBLE_EQ(*latency.measured.communication[0].latency, 3e-6);
  const Machine faster =
      predict::changed(measured(), predict::parse_what_if("gemm=1.5x,memory=2x"));
  EXPECT_NEAR(faster.measured.gemms[0].seconds, 2e-6, 1e-18);
  EXPECT_NEAR(faster.measured.locals[0].seconds, 1e-6, 1e-18);
}

TEST(WhatIf, RefusesPartsThatNobodyKnows) {
  Machine one_node = measured();
  one_node.measured.communication.erase(one_node.measured.communication.begin());
  EXPECT_THROW((void)predict::changed(one_node, predict::parse_what_if("link.inter=2x")),
               base::UsageError);
  EXPECT_NO_THROW((void)predict::changed(one_node, predict::parse_what_if("link.intra=2x")));
  const Machine nothing{.name = "empty", .source = {}};
  for (const char* const change : {"gemm=2x", "memory=2x", "latency=2x", "link.intra=2x"}) {
    EXPECT_THROW((void)predict::changed(nothing, predict::parse_what_if(change)), base::UsageError)
        << change;
  }
}

}  // namespace
}  // namespace isoscale::analysis
