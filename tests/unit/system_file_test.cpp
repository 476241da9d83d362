// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/predict/system_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "base/error.hpp"

namespace isoscale::analysis {
namespace {

const std::string sheet = R"(name = "Box"
source = "made up"
[processor]
launch = 1e-6
[[processor.matrix]]
types = ["f32", "tf32"]
peak = 1e12
reached = [[1e6, 0.5], [1e9, 0.8]]
[memory]
capacity = 16e9
bandwidth = 1e11
[memory.traffic]
softmax = 2
[network]
node_ranks = 4
ports_per_rank = 0.25
start = 1e-6
algorithms = ["ring", "multicast"]
[network.inside]
bandwidth = 1e11
reached = 0.9
latency = 1e-6
[network.across]
bandwidth = 1e10
reached = 0.8
latency = 5e-6
[network.multicast]
reached = 0.7
latency = 2e-5
across_latency = 3e-5
)";

std::string with(const std::string& from, const std::string& to) {
  std::string text = sheet;
  const std::size_t at = text.find(from);
  if (at == std::string::npos) throw std::logic_error("no " + from);
  return text.replace(at, from.size(), to);
}

std::string refusal(const std::string& toml) {
  try {
    static_cast<void>(predict::parse_system(toml, "box.toml"));
  } catch (const base::UsageError& error) {
    return error.what();
  }
  return "";
}

TEST(SystemFile, ReadsEveryNumber) {
  const simulate::Machine machine = predict::parse_system(sheet, "box.toml");
  EXPECT_EQ(machine.name, "Box");
  ASSERT_EQ(machine.processor->matrix.size(), 2U);
  EXPECT_EQ(machine.processor->matrix[1].mode, program::ComputeMode::tf32);
  EXPECT_EQ(machine.processor->matrix[1].type, program::DType::f32);
  EXPECT_EQ(machine.processor->matrix[0].reached,
            (std::vector<simulate::ReachedShare>{{1e6, 0.5}, {1e9, 0.8}}));
  EXPECT_EQ(machine.memory->traffic,
            (std::vector<simulate::Traffic>{{program::OpKind::softmax, 2}}));
  EXPECT_EQ(machine.network->node_ranks, 4);
  EXPECT_EQ(machine.network->across.latency, 5e-6);
  EXPECT_TRUE(machine.network->multicast);
  EXPECT_EQ(machine.network->multicast_rate.latency, 2e-5);
  EXPECT_FALSE(machine.host);
  EXPECT_TRUE(machine.measured.empty());
}

TEST(SystemFile, RefusesWithLineKeyAndReason) {
  const auto expect = [](const std::string& toml, std::initializer_list<std::string> parts) {
    const std::string text = refusal(toml);
    for (const std::string& part : parts) {
      EXPECT_NE(text.find(part), std::string::npos) << part << " in: " << text;
    }
  };
  expect(with("capacity = 16e9\n", ""), {"box.toml:9", "memory.capacity", "missing"});
  expect(with("bandwidth = 1e11\n[memory", "bandwidth = -3\n[memory"),
         {"box.toml:11", "memory.bandwidth", "-3"});
  expect(with("launch = 1e-6", "launch = nan"), {"box.toml:4", "processor.launch"});
  expect(with("launch = 1e-6", "launch = \"fast\""), {"box.toml:4", "must be a number"});
  expect(with("reached = 0.9", "reached = 1.2"), {"box.toml:21", "network.inside.reached", "1.2"});
  expect(with("node_ranks = 4", "node_ranks = 2.5"), {"box.toml:15", "whole number"});
  expect(with("capacity", "capasity"), {"memory.capacity", "missing"});
  expect(with("start = 1e-6", "start = 1e-6\nstrat = 1"), {"box.toml:18", "network.strat"});
  expect(with("[1e9, 0.8]", "[1e5, 0.8]"), {"box.toml:8", "ascend"});
  expect(with("[1e9, 0.8]", "[1e9, 1.8]"), {"box.toml:8", "1.8"});
  expect(with("\"tf32\"", "\"tf33\""), {"box.toml:6", "tf33", "tf32"});
  expect(with("softmax = 2", "softmx = 2"), {"box.toml:13", "softmx", "softmax"});
  expect(with("\"multicast\"", "\"tree\""), {"network.multicast", "algorithms"});
  expect(with("[network.across]", "[network.acros]"), {"network.across", "missing"});
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
  EXPECT_EQ(names.size(), 8U);
}

TEST(SystemFile, ListsTheKeysThatItReadsAndNamesTheNearestSystem) {
  const std::vector<predict::SheetKey> keys = predict::system_keys();
  const auto needed = [&](const std::string& key) {
    const auto found = std::ranges::find(keys, key, &predict::SheetKey::key);
    EXPECT_NE(found, keys.end()) << key;
    return found != keys.end() && found->needed;
  };
  EXPECT_TRUE(needed("memory.capacity"));
  EXPECT_TRUE(needed("network.multicast.reached"));
  EXPECT_FALSE(needed("processor.units"));
  EXPECT_FALSE(needed("noise.launch"));
  EXPECT_FALSE(needed("overlap"));
  EXPECT_FALSE(needed("memory.traffic.KIND"));
  EXPECT_FALSE(predict::is_system("h100"));
  try {
    static_cast<void>(predict::load_system("h100-nrd"));
    FAIL() << "there is no such system";
  } catch (const base::UsageError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("did you mean 'h100-ndr'"));
  }
}

}  // namespace
}  // namespace isoscale::analysis
