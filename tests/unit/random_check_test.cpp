// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// Random combinations of mesh, schedule, strategy and options at 64 ranks play to their end: 200,
// or ISOSCALE_RANDOM_PROGRAMS of them.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "program/check.hpp"
#include "tests/support/random_requests.hpp"

namespace isoscale::workloads {
namespace {

TEST(RandomPrograms, AreFreeOfDeadlockAndRacesAt64Ranks) {
  const char* const given = std::getenv("ISOSCALE_RANDOM_PROGRAMS");
  const int wanted = given != nullptr ? std::stoi(given) : 200;
  constexpr int ranks = 64;
  const Workload& hybrid = find_workload("hybrid");
  RandomRequests requests{20260102};
  for (int i = 0; i < wanted; ++i) {
    const Request request = requests.next(ranks);
    EXPECT_NO_THROW(program::check(hybrid.build(hybrid.twin(request)))) << describe(request);
  }
  // The combinations reach every value of every choice, or they would prove less than it seems.
  for (const OptionSpec& spec : hybrid.options) {
    if (spec.type != OptionType::choice || !RandomRequests::draws(spec)) continue;
    const auto values = requests.seen().find(std::string{spec.key});
    const std::size_t seen = values == requests.seen().end() ? 0 : values->second.size();
    EXPECT_EQ(seen, spec.choices.size()) << spec.key;
  }
}

}  // namespace
}  // namespace isoscale::workloads
