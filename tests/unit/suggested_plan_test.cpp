// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <regex>
#include <string>
#include <vector>

#include "planned_runs.hpp"
#include "runner/plan/plan.hpp"

/// The plan that a refusal suggests is not refused itself.
namespace isoscale::runner {
namespace {

constexpr int most_ranks = 18;

/// A user asks for this.
struct Wish {
  std::string workload;
  mesh::Request mesh{};
  int ranks = 1;
  workloads::Request base{};
};

std::string text_of(const Wish& wish) {
  return fmt::format(
      "{} on {} ranks, mesh {}, {} heads, {} experts", wish.workload, wish.ranks,
      mesh::to_text(wish.mesh), wish.base.model.heads,
      wish.base.options.contains("experts") ? wish.base.options.at("experts") : "no");
}

/// "" where the plan is accepted.
std::string refusal(const Wish& wish) {
  settings::RunConfig config = samples::config_of(wish.workload, wish.mesh, wish.base);
  config.ranks = {wish.ranks};
  return samples::refusal(config, samples::site_of(most_ranks));
}

/// The groups of all matches.
std::vector<std::smatch> matches(const std::string& text, const std::regex& what) {
  return {std::sregex_iterator{text.begin(), text.end(), what}, std::sregex_iterator{}};
}

std::vector<Wish> suggested(const Wish& wish, const std::string& refused) {
  static const std::regex mesh{R"(works on \d+ ranks? is ([a-z=0-9,]+))"},
      other{R"(--workload (\w+) --mesh ([a-z=0-9,]+))"},
      counts{R"(: use (\d+)(?: or (\d+))? rank)"},
      two{R"(nearest that work are (\w+)=(\d+) and (\d+))"},
      one{R"(nearest (\w+) that works is (\d+))"};
  std::vector<Wish> found;
  const auto add = [&](const auto& change) {
    found.push_back(wish);
    change(found.back());
  };
  for (const std::smatch& at : matches(refused, mesh)) {
    add([&](Wish& to) { to.mesh = mesh::parse_request(at.str(1)); });
  }
  for (const std::smatch& at : matches(refused, other)) {
    add([&](Wish& to) {
      to.workload = at.str(1);
      to.mesh = mesh::parse_request(at.str(2));
    });
  }
  for (const std::smatch& at : matches(refused, counts)) {
    for (const std::size_t group : {1U, 2U}) {
      if (at[group].matched) add([&](Wish& to) { to.ranks = std::stoi(at.str(group)); });
    }
  }
  for (const std::smatch& at : matches(refused, two)) {
    for (const std::size_t group : {2U, 3U}) {
      add([&](Wish& to) { to.base.options[at.str(1)] = at.str(group); });
    }
  }
  for (const std::smatch& at : matches(refused, one)) {
    if (at.str(1) != "mesh") add([&](Wish& to) { to.base.options[at.str(1)] = at.str(2); });
  }
  return found;
}

/// How many of the refusals suggested something.
struct Tally {
  int accepted = 0, refused = 0, suggested = 0;
};

void try_wish(const Wish& wish, Tally& tally) {
  const std::string refused = refusal(wish);
  if (refused.empty()) {
    ++tally.accepted;
    return;
  }
  ++tally.refused;
  const std::vector<Wish> others = suggested(wish, refused);
  tally.suggested += others.empty() ? 0 : 1;
  if (others.empty()) fmt::print("{}: {}\n", text_of(wish), refused);
  for (const Wish& other : others) {
    EXPECT_EQ(refusal(other), "") << text_of(wish) << ": " << refused;
  }
  EXPECT_EQ(refused.find("works here"), std::string::npos) << refused;
}

TEST(SuggestedPlan, IsAcceptedForEveryWorkloadAndRankCount) {
  Tally tally;
  for (const workloads::Workload& workload : workloads::registry()) {
    std::vector<mesh::Request> meshes{{}};
    for (const mesh::Axis axis : mesh::all_axes) {
      if (!workload.axes.contains(axis)) continue;
      for (const int extent : {2, 3}) meshes.push_back({{axis, extent}});
    }
    for (const int heads : {8, 15, 5}) {
      for (int ranks = 1; ranks <= 9; ++ranks) {
        for (const mesh::Request& mesh : meshes) {
          Wish wish{.workload = std::string{workload.name},
                    .mesh = mesh,
                    .ranks = ranks,
                    .base = samples::planned_request()};
          wish.base.model.heads = wish.base.model.kv_heads = heads;
          wish.base.model.head_size = 16 / 8;
          wish.base.model.layers = heads == 5 ? 3 : 4;
          wish.base.model.sequence = heads == 15 ? 6 : 4;
          wish.base.options.clear();
          try_wish(wish, tally);
        }
      }
    }
  }
  fmt::print("{} accepted, {} refused, {} of them with a suggestion\n", tally.accepted,
             tally.refused, tally.suggested);
  EXPECT_GT(tally.accepted, 100);
  EXPECT_GT(tally.suggested, 100);
}

}  // namespace
}  // namespace isoscale::runner
