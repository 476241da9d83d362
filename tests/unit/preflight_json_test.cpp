// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "preflight_samples.hpp"

namespace isoscale::preflight {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

class RecordedSets : public testing::TestWithParam<std::string> {};

/// Writing loses nothing that was read: numbers, texts, what is absent and what is empty.
TEST_P(RecordedSets, AreTheSameAfterReadingAndWriting) {
  const json before = json::parse(recorded_text(GetParam()));
  json after = json::parse(to_json(recorded_facts(GetParam())));
  ASSERT_FALSE(before["ranks"].empty());
  // Fields that have their default are left out; the sets may say them.
  const auto complete = [](json job) {
    for (json& node : job["nodes"]) node.emplace("node", 0);
    for (json& rank : job["ranks"]) {
      for (const char* const key : {"rank", "node", "local_rank"}) rank.emplace(key, 0);
      rank.emplace("blas_threads", 1);
      rank.emplace("environment", json::object());
      rank.emplace("locked_memory_unlimited", false);
      for (json& neighbour : rank["neighbours"]) neighbour.emplace("rank", 0);
    }
    for (json& node : job["nodes"]) {
      node.emplace("peers", json::array());
      for (json& peers : node["peers"]) peers.emplace("i", 0);
      for (json& port : node["ports"]) port.emplace("port", 1);
    }
    return job;
  };
  EXPECT_EQ(complete(after), complete(before)) << json::diff(complete(before), complete(after));
}

INSTANTIATE_TEST_SUITE_P(All, RecordedSets,
                         testing::Values("hgx-h100-8", "pcie-box", "grace-hopper", "gb200-domain",
                                         "host-cluster", "broken"),
                         [](const auto& set) {
                           std::string text = set.param;
                           std::ranges::replace(text, '-', '_');
                           return text;
                         });

TEST(JobFactsJson, KeepsAbsentApartFromEmptyAndFromZero) {
  JobFacts job;
  CheckedNode& node = job.nodes.emplace_back();
  node.ports.emplace();
  node.gpus_lost = 0;
  node.iommu_translates = false;
  const JobFacts again = job_facts_from_json(to_json(job));
  ASSERT_EQ(again.nodes.size(), 1U);
  EXPECT_TRUE(again.nodes[0].ports && again.nodes[0].ports->empty());
  EXPECT_FALSE(again.nodes[0].gpus);
  EXPECT_EQ(again.nodes[0].gpus_lost, 0);
  EXPECT_EQ(again.nodes[0].iommu_translates, false);
  EXPECT_FALSE(again.nodes[0].acs);
  EXPECT_EQ(to_json(JobFacts{}), "{}");
}

TEST(JobFactsJson, RefusesWhatItDoesNotKnow) {
  const auto refusal = [](std::string_view text, std::string_view part) {
    EXPECT_THAT([&] { static_cast<void>(job_facts_from_json(text)); },
                ThrowsMessage<base::Error>(HasSubstr(part)));
  };
  refusal("{", "not JSON");
  refusal("[]", "an object is expected");
  refusal(R"({"wrold": 4})", "there is no field 'wrold'; did you mean 'world'?");
  refusal(R"({"nodes": [{"gpus": [{"uuid": "a"}, {"vbois": "b"}]}]})",
          "nodes[0].gpus[1]: there is");
  refusal(R"({"world": "4"})", "world: a whole number is expected");
  refusal(R"({"world": 4.5})", "world: a whole number is expected");
  refusal(R"({"world": 4294967296})", "world: a whole number is expected");
  refusal(R"({"ranks": {}})", "ranks: an array is expected");
  refusal(R"({"share_gpu": 1})", "share_gpu: true or false is expected");
  refusal(R"({"nodes": [{"memory": null}]})", "nodes[0].memory: a number is expected");
  refusal(R"({"ranks": [{"versions": {"mpi": 4}}]})", "ranks[0].versions.mpi: a text is expected");
}

}  // namespace
}  // namespace isoscale::preflight
