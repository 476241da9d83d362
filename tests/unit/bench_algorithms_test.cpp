// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// Which sessions the algorithms benchmark makes, and what each is told.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "program/check.hpp"
#include "workloads/algorithms/algorithms.hpp"
#include "workloads/api/collective_algorithms.hpp"
#include "workloads/api/options.hpp"

namespace isoscale::workloads::algorithms {
namespace {

using program::CollectiveKind;
using testing::ElementsAre;

Request request_of(int ranks, Options options) {
  options.try_emplace("sizes", "1KiB,64KiB");
  options.try_emplace("small_sizes", "64");
  options.try_emplace("rotate", "1MiB");
  return {.mesh = {.dp = ranks}, .options = std::move(options)};
}

std::vector<std::string> titles(const Request& request) {
  std::vector<std::string> result;
  for (const Choice& choice : choices_of(request)) {
    result.push_back(choice.algorithm + "/" + choice.protocol + "/" +
                     std::string{name(choice.registered)} + ": " + choice.measured.at("op"));
  }
  return result;
}

TEST(AlgorithmsBench, ListsPairsThatExistBesideTheLibrarysChoice) {
  EXPECT_THAT(titles(request_of(2, {{"op", "all_gather,all_reduce"},
                                    {"algorithms", "tree,pat"},
                                    {"protocols", "ll,simple"},
                                    {"registration", "none,symmetric"}})),
              ElementsAre("//none: all_gather,all_reduce", "tree/ll/none: all_reduce",
                          "tree/simple/none: all_reduce", "pat/simple/none: all_gather",
                          "//none: all_gather,all_reduce,sendrecv",
                          "//symmetric: all_gather,all_reduce,sendrecv"));
  // All: 3 protocols of ring and tree, 5 that have one, the library's, and three registrations.
  EXPECT_EQ(choices_of(request_of(2, {})).size(), 2U * 3 + 5 + 1 + 3);
}

TEST(AlgorithmsBench, EverySessionHoldsTogetherAndSaysWhatItWasTold) {
  const Request request = request_of(4, {});
  const int batches = hooks().batches(request);
  for (int batch = 0; batch < batches; ++batch) {
    const Choice choice = choices_of(request)[static_cast<std::size_t>(batch)];
    const Bench bench = build(request, batch);
    EXPECT_NO_THROW(program::check(bench.set));
    EXPECT_EQ(bench.session.collective_algorithm, choice.algorithm);
    EXPECT_EQ(bench.session.collective_protocol, choice.protocol);
    EXPECT_EQ(bench.session.registration == program::Registration::local,
              choice.registered == Registered::local);
    for (std::size_t i = 0; i < bench.cases.size(); ++i) {
      EXPECT_FALSE(expect(request, batch, i, 1).empty());
    }
    for (const RowSpec& row : bench.rows) {
      EXPECT_EQ(row.text.at("algorithm"), choice.algorithm.empty() ? "library" : choice.algorithm);
      EXPECT_EQ(row.text.at("registration"), name(choice.registered));
      EXPECT_EQ(row.text.at("chosen"), choice.algorithm.empty() ? "unknown" : choice.algorithm);
    }
    for (const Case& one : bench.cases) EXPECT_TRUE(one.wants_estimate);
    for (const program::Buffer& buffer : bench.set.programs.front().buffers) {
      EXPECT_EQ(buffer.space == program::Space::symmetric,
                choice.registered == Registered::symmetric);
    }
  }
}

/// As NCCL's user guide and its tuning model have it.
TEST(CollectiveAlgorithms, AreThoseOfNccl) {
  const auto does = [](std::string_view name, CollectiveKind kind) {
    return find_collective_algorithm(name)->does(kind);
  };
  for (const auto kind : {CollectiveKind::all_gather, CollectiveKind::reduce_scatter}) {
    EXPECT_TRUE(does("pat", kind));
    EXPECT_TRUE(does("nvls", kind));
    EXPECT_TRUE(does("ring", kind));
    EXPECT_FALSE(does("tree", kind));
    EXPECT_FALSE(does("nvlstree", kind));
    EXPECT_FALSE(does("collnetchain", kind));
  }
  EXPECT_FALSE(does("pat", CollectiveKind::all_reduce));
  for (const CollectiveAlgorithm& algorithm : collective_algorithms) {
    EXPECT_EQ(algorithm.does(CollectiveKind::broadcast), algorithm.name == "ring");
    EXPECT_FALSE(algorithm.does(CollectiveKind::all_to_all));
    EXPECT_EQ(has_protocol(algorithm, "ll128"),
              algorithm.name == "ring" || algorithm.name == "tree");
    EXPECT_TRUE(has_protocol(algorithm, "simple"));
  }
  EXPECT_EQ(find_collective_algorithm("bruck"), nullptr);
  EXPECT_EQ(find_collective_protocol("LL"), nullptr);
}

}  // namespace
}  // namespace isoscale::workloads::algorithms
