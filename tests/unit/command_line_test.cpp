// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "base/build_info.hpp"
#include "parsed_commands.hpp"
#include "settings/option_table.hpp"

namespace isoscale::settings {
namespace {

TEST(CommandLine, AGivenDefaultChangesNothing) {
  // Where the default is a value and not words: the help tells the truth.
  const Arguments words = base::shell_words(
      "--model tiny --dtype f32 --seed 1 --scaling strong --placement packed --device auto "
      "--fill idle --blas-threads 1 --host-streams auto --gpu-bind auto --precision 1% "
      "--max-time 30s --timeout 120s --trace-steps 4 --trace-ranks 64");
  for (std::size_t i = 0; i < words.size(); i += 2) {
    const std::string &option = words[i], &value = words[i + 1];
    RunConfig given = run_of("--workload dp " + option + " " + value);
    given.command_line = "isoscale run --workload dp";
    EXPECT_EQ(given, run_of("--workload dp")) << option;
    EXPECT_EQ(find_option(option.substr(2))->default_text, value);
  }
}

TEST(CommandLine, ReadsEveryOption) {
  RunConfig run = run_of(
      "--workload hybrid --model=gpt-125m --dtype f64 --set bucket=1MiB --set batch=16 "
      "--seed 18446744073709551615 --mesh dp=2 --scaling weak --placement spread --device host "
      "--ranks 8,1,4 --fill replicas --blas-threads 2 --host-streams threads --precision 0.5% "
      "--max-time 1500ms --timeout 0s --fallback-dir /var/tmp --trace-steps 0 --trace-ranks 7 "
      "--output 'a b.h5' --force --dry-run --quiet");
  EXPECT_THAT(run.command_line, HasSubstr("--output 'a b.h5' --force"));
  EXPECT_EQ(run.fallback_dir, "/var/tmp");
  run.command_line = "";
  EXPECT_EQ(to_toml(run), R"(device = "host"
ranks = [1, 4, 8]
fill = "replicas"
blas_threads = 2
host_streams = "threads"
precision = "0.005"
max_time = "1.5s"
timeout = "0s"
trace_steps = 0
trace_ranks = 7
output = "a b.h5"
fallback_dir = "/var/tmp"
force = true
dry_run = true
quiet = true

[[experiment]]
workload = "hybrid"
model = "gpt-125m"
dtype = "f64"
set = { batch = "16", bucket = "1MiB" }
seed = "18446744073709551615"
mesh = "dp=2"
scaling = "weak"
placement = "spread"
)");
}

TEST(CommandLine, OptionsReachTheRunAndTheWorkloadsThatKnowThem) {
  EXPECT_EQ(run_of("--dry-run --ranks-per-node 8").ranks_per_node, 8);
  EXPECT_EQ(run_of("--dry-run").ranks_per_node, std::nullopt);
  EXPECT_EQ(run_of("").budget, std::nullopt);
  EXPECT_EQ(run_of("--budget 25m").budget, units::Seconds{1500});
  EXPECT_EQ(run_of("--nvtx --device cuda").nvtx, Nvtx::on);
  const RunConfig every = run_of("--ranks all");
  EXPECT_THAT(every.ranks, IsEmpty());
  EXPECT_EQ(every.rank_counts, RankCounts::every);
  const RunConfig run =
      run_of("--workload dp,tiles --set schedule=gpipe --set kernel=3 --set batch=4");
  EXPECT_EQ(run.experiments[0].base.options,
            (workloads::Options{{"schedule", "gpipe"}, {"batch", "4"}}));
  EXPECT_EQ(run.experiments[1].base.options, (workloads::Options{{"kernel", "3"}, {"batch", "4"}}));
  const RunConfig suite = run_of("--suite quick --model gpt-125m --max-time 9s");
  EXPECT_EQ(suite.suite, "quick");
  EXPECT_EQ(suite.max_time.value(), 9.0);
  for (const auto& of : suite.experiments) EXPECT_EQ(of.base.model.name, "gpt-125m");
}

TEST(CommandLine, QuotesTheCommandForAShell) {
  const Arguments words{"isoscale", "run", "--set", "a=b", "x y", "it's", "", "$HOME"};
  EXPECT_EQ(base::shell_words(base::shell_quoted(words)), words);
  EXPECT_EQ(base::shell_quoted(words), R"(isoscale run --set a=b 'x y' 'it'\''s' '' '$HOME')");
  EXPECT_EQ(base::shell_quoted(Arguments{"a\nb\xff\\'1"}), R"($'a\012b\377\\\'1')");
}

/// The test gives options that no test of tests/cli gives.
TEST(CommandLine, Report) {
  const auto plain = parsed<ReportCommand>("report -- -odd.h5");
  EXPECT_THAT(plain.files, ElementsAre("-odd.h5"));
  EXPECT_EQ(plain.format, Format::text);
  EXPECT_FALSE(plain.baseline || plain.whole_node || !plain.trace.empty());
  const auto of_node = parsed<ReportCommand>("report a.h5 b.h5 --baseline node --trace t.json");
  EXPECT_THAT(of_node.files, ElementsAre("a.h5", "b.h5"));
  EXPECT_TRUE(of_node.whole_node);
  EXPECT_EQ(of_node.baseline, std::nullopt);
  EXPECT_EQ(of_node.if_exists, IfExists::refuse);
}

TEST(CommandLine, Predict) {
  const auto asked = parsed<PredictCommand>(
      "predict a.toml --ranks 64,8 --workload hybrid --model tiny --dtype f32 --scaling weak "
      "--mesh tp=2 --best --set bucket=1MiB --set gemm=2x,memory=2x --nodes-of 4 --each-rank "
      "--baseline 8 --format csv --html a.html --force");
  EXPECT_EQ(asked.source, "a.toml");
  EXPECT_THAT(asked.ranks, ElementsAre(8, 64));
  EXPECT_EQ(asked.workload, "hybrid");
  EXPECT_EQ(asked.model->name, "tiny");
  EXPECT_EQ(asked.precision, program::Precision::f32);
  EXPECT_EQ(asked.scaling, workloads::Scaling::weak);
  EXPECT_EQ(asked.mesh, (mesh::Request{{mesh::Axis::tp, 2}}));
  EXPECT_TRUE(asked.best && asked.each_rank);
  EXPECT_THAT(asked.settings, ElementsAre(Pair("bucket", "1MiB"), Pair("gemm", "2x,memory=2x")));
  EXPECT_EQ(asked.node_ranks, 4);
  EXPECT_EQ(asked.baseline, 8);
  EXPECT_EQ(asked.format, Format::csv);
  EXPECT_EQ(asked.html, "a.html");
  EXPECT_EQ(asked.if_exists, IfExists::overwrite);
  const auto plain = parsed<PredictCommand>("predict a.h5,b.h5,c.h5 --ranks 8");
  EXPECT_EQ(plain.source, "a.h5");
  EXPECT_THAT(plain.launches, ElementsAre("b.h5", "c.h5"));
  EXPECT_EQ(plain.workload, "");
  EXPECT_FALSE(plain.model || plain.precision || plain.scaling || plain.baseline);
  EXPECT_FALSE(plain.best || plain.each_rank);
  EXPECT_EQ(plain.format, Format::text);
}

/// The listings of workloads, models and suites are asked for by tests/cli/run_test.py.
TEST(CommandLine, ListingsShowEachItem) {
  for (const auto& [command, shows] : std::vector<std::pair<const char*, std::vector<const char*>>>{
           {"list models", {"tiny", "arXiv 2407.21783"}},
           {"list systems", {"h100-ndr", "GB200", "H100 SXM, EFA: nodes of 8 ranks"}},
           {"list software",
            {"nemo-2025", "attention by the kernel vendor", "84 us for an op", "vTrain"}},
           {"list keys model", {"layers", "[4 x hidden]"}},
           {"list keys suite", {"workload"}},
           {"list options dp", {"overlap=on|off", "25MiB", "derived"}}}) {
    const std::string text = listing(parsed<config::ListCommand>(command));
    for (const char* const shown : shows) EXPECT_THAT(text, HasSubstr(shown)) << command;
  }
}

TEST(CommandLine, HelpComesWithoutArgumentsAndAtBothLevels) {
  EXPECT_THAT(text_of({}), AllOf(HasSubstr("run"), HasSubstr("report"), HasSubstr("list")));
  EXPECT_THAT(std::get<config::PrintCommand>(config::parse_arguments({})).text, HasSubstr("Usage"));
  for (const char* const option : {"--help", "-h"}) EXPECT_EQ(text_of({option}), text_of({}));
  EXPECT_THAT(text_of({"report", "--help"}), HasSubstr("--baseline N|node"));
  EXPECT_EQ(text_of({"run", "--ranks", "0", "--help"}), text_of({"run", "--help"}));
  EXPECT_THAT(text_of({"--version"}),
              AllOf(HasSubstr("isoscale "), HasSubstr(std::string{base::build_info().version})));
}

TEST(CommandLine, HelpHasALineForEachOption) {
  const std::string help = text_of({"run", "--help"});
  const auto lines = base::split(help, '\n');
  for (const RunOption& option : run_options()) {
    int found = 0;
    for (const std::string_view line : lines) {
      if (!line.starts_with("  --" + std::string{option.name} + " ")) continue;
      ++found;
      EXPECT_THAT(std::string{line}, HasSubstr(std::string{option.help}));
      EXPECT_THAT(std::string{line}, HasSubstr(std::string{option.default_text}));
    }
    EXPECT_EQ(found, 1) << option.name;
  }
  for (const std::string_view line : lines) EXPECT_LE(line.size(), 100U) << line;
}

TEST(CommandLine, CheckTakesWhatDecidesWhereARunPlays) {
  const auto plain = parsed<CheckCommand>("check");
  EXPECT_EQ(plain.format, Format::text);
  EXPECT_TRUE(plain.config.experiments.empty());
  const auto check = parsed<CheckCommand>(
      "check --device host --blas-threads 3 --allow a,b --allow c --format json");
  EXPECT_EQ(check.format, Format::json);
  EXPECT_EQ(check.config.device, Device::host);
  EXPECT_EQ(check.config.blas_threads, 3);
  EXPECT_THAT(check.config.allowed, ElementsAre("a", "b", "c"));
}

TEST(CommandLine, RefusalsSayWhatIsWrongAndWhatToDo) {
  testing_support::expect_words_of<std::string>(
      {{"rum", {"did you mean 'run'?"}},
       {"compare a", {"two sides or more"}},
       {"predict a.h5 --ranks 8,0", {"'8,0' holds '0'"}},
       {"predict a.h5 --ranks 8 --workload hybird", {"did you mean 'hybrid'?"}},
       {"predict a.h5 --ranks 8 --nodes-of 0", {"--nodes-of: '0'"}},
       {"predict a.h5 --ranks 8 --set gemm", {"'gemm' is not KEY=VALUE"}},
       {"predict a.h5 --ranks 8 --force", {"--force is about"}},
       {"predict a.h5 b.h5 --ranks 8", {"unexpected argument 'b.h5'"}},
       {"check --device host --share-gpu", {"only on a GPU"}},
       {"run --device host --nvtx --graph --gemm-algorithms a.h5 --gpu-bind 0 --share-gpu",
        {"--share-gpu, --gpu-bind, --graph, --nvtx, --gemm-algorithms: has", "device is host"}},
       {"run --device cuda --inject slow-rank=1:2 --inject clock=1:5ms",
        {"--inject slow-rank=1:2:", "only the host"}},
       {"run --inject slow-rank=3:2 --inject slow-rank=3:4", {"--inject", "give each once"}},
       {"report run.h5 --force", {"--trace"}},
       {"--bogus", {"unknown option '--bogus'", "isoscale --help"}},
       {"run --modle x", {"unknown option '--modle'", "did you mean '--model'?"}},
       {"run --modle=x", {"unknown option '--modle'", "isoscale run --help"}},
       {"run --ranks-per-node 8", {"--ranks-per-node", "only with --dry-run"}},
       {"run --dry-run --device host --on h100-ndr", {"--on h100-ndr", "device is host"}},
       {"run --dry-run --ranks-per-node 0", {"--ranks-per-node: '0'"}},
       {"run -x", {"unknown option '-x'"}},
       {"run --inject x", {"'x' is not KIND=VALUE"}},
       {"report a.h5 --pdf x", {"unknown option '--pdf'"}},
       {"compare a.h5 b.h5 --gate nan", {"--gate: 'nan'"}},
       {"compare a.h5 b.h5 --strict", {"--strict is about"}},
       {"report a.h5 --trace x --trace y", {"--trace is given twice"}},
       {"run a.toml b.toml", {"unexpected argument 'b.toml'"}},
       {"run --seed", {"--seed needs a value"}},
       {"run --seed=", {"the value is empty"}},
       {"run --seed ''", {"--seed: '' is empty"}},
       {"run --seed --force", {"--seed needs a value", "'--force' follows"}},
       {"run --seed 1 --seed=2", {"--seed is given twice", "'1' and as '2'"}},
       {"run --force=false", {"--force takes no value"}},
       {"compare a.h5 b.h5 --gate 5% --strict=false", {"--strict takes no value"}},
       {"report a.h5 --index=no", {"--index takes no value"}},
       {"run ''", {"EXPERIMENT.toml: '' is empty"}},
       {"run /", {"is a directory"}},
       {"run --workload dp --suite quick", {"--suite and --workload both", "give one of"}},
       {"run --workload dp,,tp", {"holds an empty name"}},
       {"run --workload dp,dp", {"names 'dp' twice"}},
       {"run --set bucket", {"'bucket' is not KEY=VALUE"}},
       {"run --set =1", {"'=1' is not KEY=VALUE"}},
       {"run --workload calibrate --set bucket=1",
        {"option 'bucket' of calibrate", "isoscale list options calibrate"}},
       {"run --set batch=1 --set batch=2", {"'batch' is given twice"}},
       {"run --seed -1", {"'-1' is not a"}},
       {"run --blas-threads 0", {"--blas-threads: '0'", "from 1 to"}},
       {"run --trace-ranks 0", {"--trace-ranks: '0'", "from 1 to"}},
       {"run --max-time 1001h", {"--max-time", "up to 1000h"}},
       {"run --timeout 1001h", {"--timeout", "up to 1000h"}},
       {"run --seed 18446744073709551616", {"to 18446744073709551615"}},
       {"run --ranks 1,2,", {"holds ''", "1,2,4"}},
       {"run --ranks 1,all", {"holds 'all'"}},
       {"run --ranks every", {"'all', or"}},
       {"predict h100-ndr --ranks all", {"holds 'all': write whole numbers"}},
       {"run --ranks 99999999999999999999", {"holds '99999999999999999999'"}},
       {"run --ranks '2 4'", {"holds '2 4'"}},
       {"run --workload tp --mesh dp=2,tp=2", {"does not use dp"}},
       {"run --workload tiles --mesh ep=2", {"does not use ep", "dp+tp+cp"}},
       {"run --share-gpu=yes", {"--share-gpu takes no value"}},
       {"run --gemm-algorithms", {"--gemm-algorithms needs a value"}},
       {"run --precision 5", {"ambiguous", "5% or 0.05"}},
       {"run --precision 0%", {"not above 0%"}},
       {"run --precision 100%", {"below 100%"}},
       {"run --max-time 0", {"not a time above 0"}},
       {"run --budget 0s", {"--budget"}},
       {"run --max-time 3x", {"unknown unit 'x'"}},
       {"run --trace-steps 1001", {"from 0 to 1000"}},
       {"run --output 'a\nb.h5'", {"'a\\x0ab.h5' holds a"}},
       {"report a.h5 --baseline 0", {"--baseline: '0'", "from 1 to"}},
       {"report a.h5 --baseline 99999999999", {"--baseline: '99999999999'"}},
       {"list", {"one of workloads, models"}},
       {"list keys", {"needs one of model"}},
       {"list options", {"name of a workload"}},
       {"list models tiny", {"unexpected argument 'tiny'"}}},
      refusal_of);
  for (const std::string command :
       {"run --device gpu", "run --scaling both", "run --placement far", "run --fill work",
        "report a.h5 --format xml", "list foo", "list keys models"}) {
    EXPECT_THAT(refusal_of(command),
                HasSubstr("'" + command.substr(command.rfind(' ') + 1) + "' is not one of"));
  }
  EXPECT_THAT(refusal({"run", "--output", std::string(5000, 'x')}), HasSubstr("too long for"));
}

TEST(CommandLine, HostileValuesAreEchoedShortAndClean) {
  const std::vector<std::string> values{std::string(1'000'000, '9'),
                                        std::string(1'000'000, ','),
                                        "\x1b]0;owned\x07",
                                        "\xff\xfe\xfd",
                                        std::string{"\xc2\x9b"} + "31m",
                                        std::string{"a\0b", 3},
                                        std::string(1'000'000, '[')};
  const auto check = [](const Arguments& arguments) {
    const std::string message = refusal(arguments);
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
