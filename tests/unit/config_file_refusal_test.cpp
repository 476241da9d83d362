// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/text.hpp"
#include "config_support.hpp"
#include "settings/run_config.hpp"

namespace isoscale::settings {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing_support::usage_error;

RunConfig read(std::string_view toml) {
  return from_toml(toml, "exp.toml", testing_support::fake_workloads());
}

struct Refusal {
  std::string_view toml, first, second = {};
};
class RefusedFile : public testing::TestWithParam<Refusal> {};

TEST_P(RefusedFile, SaysWhereAndWhy) {
  EXPECT_THAT(
      usage_error([] { (void)read(GetParam().toml); }),
      AllOf(HasSubstr(std::string{GetParam().first}), HasSubstr(std::string{GetParam().second})));
}

INSTANTIATE_TEST_SUITE_P(
    Config, RefusedFile,
    testing::Values(
        Refusal{"\nmodle = \"tiny\"", "exp.toml:2: unknown key 'modle'", "did you mean 'model'?"},
        Refusal{"max-time = \"1s\"", "exp.toml:1: unknown key 'max-time'",
                "did you mean 'max_time'?"},
        Refusal{"nvtx = 1", "nvtx must be true or false"},
        Refusal{"help = true", "unknown key 'help'"},
        Refusal{"workload = ", "exp.toml:1: not valid TOML"},
        Refusal{"seed = 1\nseed = 2", "exp.toml:2: not valid TOML"},
        Refusal{"\xff", "not valid TOML"},
        Refusal{"\nworkload = \"xp\"", "exp.toml:2: workload: unknown workload 'xp'"},
        Refusal{"workload = []", "workload is an empty list"},
        Refusal{"workload = [\"dp,tp\"]", "holds 'dp,tp'", "one value per item"},
        Refusal{"workload = [[\"dp\"]]", "must be one value"},
        Refusal{"workload = \"\"", "workload: '' is empty"},
        Refusal{"workload = [\"\"]", "holds ''"}, Refusal{"workload = {}", "must be one value"},
        Refusal{"model = \"huge\"", "exp.toml:1: model: unknown model 'huge'"},
        Refusal{"model = 3", "unknown model '3'"}, Refusal{"model = {}", "missing: layers"},
        Refusal{"model = { hiden = 1 }", "unknown key 'hiden'", "did you mean 'hidden'?"},
        Refusal{"dtype = [\"f32\"]", "dtype must be one value"},
        Refusal{"dtype = 1979-05-27", "dtype must be one value"},
        Refusal{"ranks = []", "ranks is an empty list"}, Refusal{"ranks = [0]", "ranks: '0'"},
        Refusal{"ranks = [1, 1]", "names 1 twice"}, Refusal{"ranks = 1.5", "ranks: '1.5'"},
        Refusal{"set = \"bucket=1\"", "set must be a table"},
        Refusal{"\nset = { bukket = 1 }", "exp.toml:2: bukket: unknown option 'bukket'"},
        Refusal{"set = { bucket = \"64M\" }", "exp.toml:1: bucket: option bucket", "ambiguous"},
        Refusal{"set = { bucket = \"a\\u0000b\" }", "'a\\x00b'", "without meaning"},
        Refusal{"set = { bucket = [] }", "bucket must be one value"},
        Refusal{"mesh = {}", "mesh is an empty table"}, Refusal{"mesh = { dp = 0 }", "dp is '0'"},
        Refusal{"mesh = [2]", "mesh must be one value"},
        Refusal{"workload = \"tp\"\nmesh = \"dp=2\"", "exp.toml:2: mesh",
                "the workload tp does not use dp"},
        Refusal{"force = 1", "force must be true or false"},
        Refusal{"force = \"true\"", "force must be true or false"},
        Refusal{"max_time = -1", "max_time: '-1' is negative"},
        Refusal{"max_time = inf", "max_time: 'inf'"},
        Refusal{"precision = true", "precision: 'true'"},
        Refusal{"output = \"a\\nb\"", "output: 'a\\x0ab' holds a control character"},
        Refusal{"suite = \"quik\"", "exp.toml:1: suite: unknown suite 'quik'"},
        Refusal{"suite = \"quick\"\nworkload = \"dp\"",
                "exp.toml:1: suite and exp.toml:2: workload", "both choose"},
        Refusal{"workload = \"dp\"\n[[experiment]]\nworkload = \"tp\"", "both choose",
                "[[experiment]]"},
        Refusal{"suite = \"quick\"\n[[experiment]]\nworkload = \"tp\"", "both choose"},
        Refusal{"experiment = 3", "must be [[experiment]] tables"},
        Refusal{"experiment = []", "must be [[experiment]] tables"},
        Refusal{"experiment = [3]", "must be [[experiment]] tables"},
        Refusal{"\n[[experiment]]\nmodel = \"tiny\"", "exp.toml:2: experiment names no workload"},
        Refusal{"[[experiment]]\nworkload = \"dp\"\nmax_time = 3", "exp.toml:3: max_time",
                "holds for the whole run"},
        Refusal{"[[experiment]]\nworkload = \"dp\"\nscalling = 3", "unknown key 'scalling'",
                "did you mean 'scaling'?"},
        Refusal{"[[experiment]]\nworkload = \"tp\"\nset = { bucket = 1 }",
                "exp.toml:3: bucket: unknown option 'bucket' of tp"},
        Refusal{"[recorded]\nuser = \"x\"", "user is unknown"},
        Refusal{"[recorded]\nsuite = 3", "suite must be a string"},
        Refusal{"recorded = 3", "recorded must be a table"}));

TEST(ExperimentFile, HostileTextIsEchoedShortAndClean) {
  const std::vector<std::string> texts{"\"" + std::string(500'000, 'k') + "\" = 1",
                                       "\"\\u001b[2J\" = 1",
                                       "model = \"" + std::string(500'000, 'x') + "\"",
                                       "ranks = [" + std::string(500'000, '1'),
                                       std::string(500'000, '['),
                                       "workload = \"\\u001b[2J\"",
                                       "set = { \"\\u001b[2J\" = 1 }",
                                       "[recorded]\n\"\\u001b[2J\" = \"\"",
                                       "[recorded]\nsuite = \"\\u001b[2J\""};
  for (const std::string& toml : texts) {
    const std::string message = usage_error([&] { (void)read(toml); });
    EXPECT_LT(message.size(), 700U);
    EXPECT_TRUE(base::is_plain(message)) << message;
  }
}

}  // namespace
}  // namespace isoscale::settings
