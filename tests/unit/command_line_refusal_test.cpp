// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/text.hpp"
#include "config/command_line.hpp"
#include "config_support.hpp"
#include "settings/option_table.hpp"

namespace isoscale::settings {
namespace {

using testing::AllOf;
using testing::HasSubstr;

using Arguments = std::vector<std::string>;

config::Command parse(Arguments arguments) {
  arguments.insert(arguments.begin(), "isoscale");
  return config::parse_arguments(arguments, testing_support::fake_workloads());
}

struct Refusal {
  Arguments arguments;
  std::string_view first, second = {};
};
class RefusedCommand : public testing::TestWithParam<Refusal> {};

TEST_P(RefusedCommand, SaysWhatAndWhatToDo) {
  EXPECT_THAT(
      testing_support::usage_error([] { (void)parse(GetParam().arguments); }),
      AllOf(HasSubstr(std::string{GetParam().first}), HasSubstr(std::string{GetParam().second})));
}

INSTANTIATE_TEST_SUITE_P(
    Shape, RefusedCommand,
    testing::Values(
        Refusal{{"frob"}, "unknown command 'frob'", "run, check, report, compare, predict, list"},
        Refusal{{"rum"}, "did you mean 'run'?"}, Refusal{{"compare", "a"}, "two sides or more"},
        Refusal{{"predict", "--ranks", "8"}, "predict needs a run file", ".toml"},
        Refusal{{"predict", "a.h5"}, "predict needs --ranks"},
        Refusal{{"predict", "a.h5", "--ranks", "8,0"}, "--ranks: '8,0' holds '0'"},
        Refusal{{"predict", "a.h5", "--ranks", "8", "--workload", "hybird"},
                "did you mean 'hybrid'?"},
        Refusal{{"predict", "a.h5", "--ranks", "8", "--nodes-of", "0"}, "--nodes-of: '0'"},
        Refusal{{"predict", "a.h5", "--ranks", "8", "--set", "gemm"}, "'gemm' is not KEY=VALUE"},
        Refusal{{"predict", "a.h5", "--ranks", "8", "--force"}, "--force is about the file"},
        Refusal{{"predict", "a.h5", "b.h5", "--ranks", "8"}, "unexpected argument 'b.h5'"},
        Refusal{{"check", "--ranks", "2"}, "unknown option '--ranks'"},
        Refusal{{"check", "--device", "host", "--share-gpu"}, "only on a GPU"},
        Refusal{{"--bogus"}, "unknown option '--bogus'", "isoscale --help"},
        Refusal{{"run", "--modle", "x"}, "unknown option '--modle'", "did you mean '--model'?"},
        Refusal{{"run", "--modle=x"}, "unknown option '--modle'", "isoscale run --help"},
        Refusal{{"run", "--ranks-per-node", "8"}, "--ranks-per-node", "only with --dry-run"},
        Refusal{{"run", "--on", "h100-ndr"}, "--on", "only with --dry-run"},
        Refusal{{"run", "--dry-run", "--ranks-per-node", "0"}, "--ranks-per-node: '0'"},
        Refusal{{"run", "-x"}, "unknown option '-x'"},
        Refusal{{"run", "--inject", "x"}, "--inject: 'x' is not KIND=VALUE"},
        Refusal{{"run", "--frobnicate", "1m"}, "unknown option '--frobnicate'"},
        Refusal{{"report", "a.h5", "--pdf", "x"}, "unknown option '--pdf'"},
        Refusal{{"compare", "a.h5", "b.h5", "--gate", "nan"}, "--gate: 'nan'"},
        Refusal{{"compare", "a.h5", "b.h5", "--strict"}, "--strict is about the gate"},
        Refusal{{"report", "a.h5", "--trace", "x", "--trace", "y"}, "--trace is given twice"},
        Refusal{{"run", "a.toml", "b.toml"}, "unexpected argument 'b.toml'"},
        Refusal{{"run", "--seed"}, "--seed needs a value"},
        Refusal{{"run", "--seed="}, "--seed: the value is empty"},
        Refusal{{"run", "--seed", ""}, "--seed: '' is empty"},
        Refusal{{"run", "--seed", "--force"}, "--seed needs a value", "'--force' follows"},
        Refusal{{"run", "--seed", "1", "--seed=2"}, "--seed is given twice", "'1' and as '2'"},
        Refusal{{"run", "--force=false"}, "--force takes no value"},
        Refusal{{"run", "nowhere.toml"}, "cannot read the experiment file 'nowhere.toml'"},
        Refusal{{"run", ""}, "EXPERIMENT.toml: '' is empty"},
        Refusal{{"run", "/"}, "is a directory"},
        Refusal{{"run", "--workload", "dp", "--suite", "quick"},
                "--suite and --workload both choose what to measure",
                "give one of them"}));

INSTANTIATE_TEST_SUITE_P(
    Values, RefusedCommand,
    testing::Values(
        Refusal{{"run", "--workload", "xp"}, "unknown workload 'xp'", "dp, tp, pp, hybrid"},
        Refusal{{"run", "--workload", "hybird"}, "did you mean 'hybrid'?"},
        Refusal{{"run", "--workload", "dp,,tp"}, "holds an empty name"},
        Refusal{{"run", "--workload", ","}, "holds an empty name"},
        Refusal{{"run", "--workload", "dp,dp"}, "names 'dp' twice"},
        Refusal{{"run", "--suite", "quik"}, "unknown suite 'quik'", "did you mean 'quick'?"},
        Refusal{{"run", "--suite", "acceptanse"}, "unknown suite", "acceptance, quick, standard"},
        Refusal{{"run", "--model", "gpt-13"}, "unknown model 'gpt-13'", "'gpt-13b'"},
        Refusal{{"run", "--model", "no.toml"}, "cannot read the model file 'no.toml'"},
        Refusal{{"run", "--dtype", "bf17"}, "--dtype: unknown dtype 'bf17'", "bf16, fp8"},
        Refusal{{"run", "--set", "bucket"}, "'bucket' is not KEY=VALUE"},
        Refusal{{"run", "--set", "=1"}, "'=1' is not KEY=VALUE"},
        Refusal{
            {"run", "--set", "bukket=1"}, "unknown option 'bukket' of", "did you mean 'bucket'?"},
        Refusal{{"run", "--workload", "tp", "--set", "bucket=1"},
                "unknown option 'bucket' of tp",
                "isoscale list options tp"},
        Refusal{{"run", "--set", "bucket=64M"}, "--set: option bucket", "ambiguous"},
        Refusal{{"run", "--set", "bucket="}, "option bucket = '': empty"},
        Refusal{{"run", "--set", "overlap=yes"}, "option overlap = 'yes'", "on|off"},
        Refusal{{"run", "--set", "batch=0"}, "option batch = '0': too small", "at least 1"},
        Refusal{{"run", "--set", "batch=1", "--set", "batch=2"}, "'batch' is given twice"},
        Refusal{{"run", "--seed", "-1"}, "--seed: '-1' is not a whole number"},
        Refusal{{"run", "--seed", "18446744073709551616"}, "from 0 to 18446744073709551615"},
        Refusal{{"run", "--seed", "0x10"}, "is not a whole number"},
        Refusal{{"run", "--device", "gpu"}, "'gpu' is not one of auto, cuda, host"},
        Refusal{{"run", "--ranks", "0"}, "--ranks: '0'", "whole numbers from 1"},
        Refusal{{"run", "--ranks", "-2"}, "--ranks: '-2'", "whole numbers from 1"},
        Refusal{{"run", "--ranks", "1,2,"}, "holds ''", "1,2,4"},
        Refusal{{"run", "--ranks", "4,2,4"}, "names 4 twice"},
        Refusal{{"run", "--ranks", "1,all"}, "holds 'all'"},
        Refusal{{"run", "--ranks", "99999999999999999999"}, "holds '99999999999999999999'"},
        Refusal{{"run", "--ranks", "2 4"}, "holds '2 4'"},
        Refusal{{"run", "--mesh", "dp=0"}, "dp is '0'", "at least 1"},
        Refusal{{"run", "--mesh", "xp=2"}, "unknown axis 'xp'", "tp, cp, ep, dp, pp"},
        Refusal{{"run", "--mesh", "dp"}, "'dp' is not AXIS=NUMBER"},
        Refusal{{"run", "--mesh", "dp=2,dp=2"}, "dp is given twice"},
        Refusal{{"run", "--mesh", "dp=99999999999"}, "dp is '99999999999'"},
        Refusal{{"run", "--workload", "tp", "--mesh", "dp=2,tp=2"},
                "the workload tp does not use dp"},
        Refusal{{"run", "--workload", "hybrid", "--mesh", "cp=2"}, "does not use cp", "dp+tp+pp"},
        Refusal{{"run", "--scaling", "both"}, "'both' is not one of strong, weak"},
        Refusal{{"run", "--placement", "far"}, "'far' is not one of packed, spread"},
        Refusal{{"run", "--fill", "work"}, "'work' is not one of idle, replicas"},
        Refusal{{"run", "--blas-threads", "0"}, "--blas-threads: '0'", "from 1 to"},
        Refusal{{"run", "--gpu-bind", "first"}, "--gpu-bind: 'first' holds 'first'", "'auto'"},
        Refusal{{"run", "--gpu-bind", "0,,1"}, "holds ''", "such as 2,3,0,1"},
        Refusal{{"run", "--gpu-bind", "0,auto"}, "holds 'auto'"},
        Refusal{{"run", "--gpu-bind", "00"}, "holds '00'"},
        Refusal{{"run", "--gpu-bind", "-1"}, "holds '-1'"},
        Refusal{{"run", "--gpu-bind", "GPU-"}, "holds 'GPU-'"},
        Refusal{{"run", "--gpu-bind", "1b:00"}, "holds '1b:00'"},
        Refusal{{"run", "--gpu-bind", "1b:00.8"}, "holds '1b:00.8'"},
        Refusal{{"run", "--share-gpu=yes"}, "--share-gpu takes no value"},
        Refusal{{"run", "--gemm-algorithms"}, "--gemm-algorithms needs a value"},
        Refusal{{"run", "--device", "host", "--share-gpu"},
                "--share-gpu: has a meaning only on a GPU",
                "--device cuda"},
        Refusal{{"run", "--device", "host", "--graph", "--gpu-bind", "0"},
                "--gpu-bind, --graph: has a meaning only on a GPU",
                "the device is host"},
        Refusal{{"run", "--device", "host", "--gemm-algorithms", "a.h5"}, "--gemm-algorithms: has"},
        Refusal{{"run", "--precision", "5"}, "ambiguous", "5% or 0.05"},
        Refusal{{"run", "--precision", "0%"}, "not above 0%"},
        Refusal{{"run", "--precision", "100%"}, "below 100%"},
        Refusal{{"run", "--precision", "nan"}, "--precision: 'nan'"},
        Refusal{{"run", "--precision", "-1%"}, "negative"},
        Refusal{{"run", "--max-time", "0"}, "not a time above 0"},
        Refusal{{"run", "--max-time", "1001h"}, "up to 1000h"},
        Refusal{{"run", "--timeout", "1001h"}, "up to 1000h"},
        Refusal{{"run", "--timeout", "-1s"}, "-1s"},
        Refusal{{"run", "--max-time", "3x"}, "unknown unit 'x'"},
        Refusal{{"run", "--max-time", "inf"}, "--max-time: 'inf'"},
        Refusal{{"run", "--trace-steps", "1001"}, "from 0 to 1000"},
        Refusal{{"run", "--trace-ranks", "0"}, "from 1 to"},
        Refusal{{"run", "--output", "a\nb.h5"}, "'a\\x0ab.h5' holds a control character"},
        Refusal{{"run", "--output", std::string(5000, 'x')}, "too long for a path"},
        Refusal{{"report"}, "needs a run file"},
        Refusal{{"report", "a.h5", "--format", "xml"}, "'xml' is not one of text, json, csv"},
        Refusal{{"report", "a.h5", "--baseline", "0"}, "--baseline: '0'", "from 1 to"},
        Refusal{{"report", "a.h5", "--baseline", "99999999999"}, "--baseline: '99999999999'"},
        Refusal{{"list"}, "needs one of workloads, models, suites, options, systems, keys"},
        Refusal{{"list", "foo"},
                "'foo' is not one of workloads, models, suites, options, systems, keys"},
        Refusal{{"list", "keys"}, "needs one of model, system, suite"},
        Refusal{{"list", "keys", "models"}, "'models' is not one of model, system, suite"},
        Refusal{{"list", "options"}, "needs the name of a workload"},
        Refusal{{"list", "options", "d"}, "unknown workload 'd'", "dp, tp, pp, hybrid"},
        Refusal{{"list", "models", "tiny"}, "unexpected argument 'tiny'"}));

TEST(CommandLine, HostileValuesAreEchoedShortAndClean) {
  const std::vector<std::string> values{std::string(1'000'000, '9'),
                                        std::string(1'000'000, ','),
                                        "\x1b]0;owned\x07",
                                        "\xff\xfe\xfd",
                                        std::string{"\xc2\x9b"} + "31m",
                                        std::string{"a\0b", 3},
                                        std::string(1'000'000, '[')};
  const auto check = [](const Arguments& arguments) {
    const std::string message = testing_support::usage_error([&] { (void)parse(arguments); });
    EXPECT_LT(message.size(), 600U) << arguments[1];
    EXPECT_TRUE(base::is_plain(message)) << arguments[1];
  };
  for (const std::string& value : values) {
    for (const RunOption& option : run_options()) {
      if (option.arity == Arity::flag) continue;
      if (option.name == "output" && value == values[0]) continue;  // tried above
      check({"run", "--" + std::string{option.name} + "=" + value});
    }
    check({"run", "--" + value});
    check({"run", value});
    check({value});
    check({"--" + value});
    check({"list", value});
    check({"list", "options", value});
    check({"report", "a.h5", "--baseline", value});
    check({"report", "a.h5", "--" + value});
  }
}

}  // namespace
}  // namespace isoscale::settings
