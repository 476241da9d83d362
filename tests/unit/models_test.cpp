// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>

#include "refusal.hpp"
#include "workloads/api/toml_files.hpp"
#include "workloads/api/workload.hpp"

namespace isoscale::workloads {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing_support::usage_error;

constexpr std::string_view valid = R"(name = "mine"
source = "a drawing board"
hidden = 8
ffn = 32
heads = 4
kv_heads = 2
head_size = 3
gated_mlp = false
layers = 2
sequence = 5
vocabulary = 10
tied_embedding = false
learned_positions = true
published_parameters = 0
)";

/// `valid` with one line (that starts with `key`) replaced by `line`.
std::string with(std::string_view key, std::string_view line) {
  std::string text{valid};
  const auto begin = text.find(std::string{key} + " = ");
  return text.replace(begin, text.find('\n', begin) - begin, line);
}

TEST(Models, ArePresetsInTheOrderOfTheirSize) {
  EXPECT_THAT(model_names(), ElementsAre("tiny", "gpt-125m", "gpt-1.3b", "gpt-6.7b", "llama3-8b",
                                         "gpt-13b", "llama3-70b", "gpt-175b"));
}

TEST(Models, HaveAsManyParametersAsTheirSourceSays) {
  for (const auto& [name, parameters] : {std::pair{"gpt-125m", 125e6},
                                         {"gpt-1.3b", 1.3e9},
                                         {"gpt-6.7b", 6.7e9},
                                         {"gpt-13b", 13e9},
                                         {"gpt-175b", 174.6e9},
                                         {"llama3-8b", 8.03e9},
                                         {"llama3-70b", 70.6e9}}) {
    const Model model = load_model(name);
    EXPECT_EQ(model.name, name);
    EXPECT_THAT(model.source, HasSubstr("arXiv"));
    EXPECT_DOUBLE_EQ(model.published_parameters, parameters);
    EXPECT_NEAR(parameter_count(model) / parameters, 1.0, 0.02);
  }
}

TEST(Models, CountParametersExactly) {
  // The count that the model's own checkpoint has, tensor by tensor.
  EXPECT_EQ(parameter_count(load_model("llama3-8b")), 8'030'261'248.0);
  EXPECT_EQ(parameter_count(load_model("llama3-70b")), 70'553'706'496.0);
  // Small enough for pencil and paper. Per layer: QKV 8 x (12 + 2 x 6) + 24, projection 12 x 8 + 8,
  // MLP 8 x 32 + 32 and 32 x 8 + 8, two norms of 2 x 8: 904. Then the last norm, two embeddings of
  // 10 x 8, positions of 5 x 8.
  EXPECT_EQ(parameter_count(parse_model(valid, "here")), 2 * 904 + 16 + 160 + 40.0);
  const Model tiny = load_model("tiny");
  for (const int extent :
       {tiny.heads, tiny.kv_heads, tiny.ffn, tiny.hidden, tiny.layers, tiny.vocabulary}) {
    EXPECT_EQ(extent % 8, 0) << extent;
  }
  EXPECT_LT(parameter_count(tiny), 2e6);
}

TEST(Models, GptPresetsHaveTheShapeOfTheFamily) {
  for (const std::string& name : model_names()) {
    const Model model = load_model(name);
    EXPECT_EQ(model.heads * model.head_size, model.hidden) << name;
    if (!name.starts_with("gpt")) continue;
    EXPECT_EQ(model.ffn, 4 * model.hidden) << name;
    EXPECT_EQ(model.kv_heads, model.heads) << name;
    EXPECT_EQ(model.sequence, 2048) << name;
    EXPECT_FALSE(model.gated_mlp) << name;
  }
}

TEST(Models, ReadEveryKey) {
  const Model expected{.name = "mine",
                       .source = "a drawing board",
                       .hidden = 8,
                       .ffn = 32,
                       .heads = 4,
                       .kv_heads = 2,
                       .head_size = 3,
                       .gated_mlp = false,
                       .layers = 2,
                       .sequence = 5,
                       .vocabulary = 10,
                       .tied_embedding = false,
                       .learned_positions = true,
                       .published_parameters = 0};
  EXPECT_EQ(parse_model(valid, "here"), expected);
}

TEST(Models, WriteWhatTheyRead) {
  for (const std::string& name : model_names()) {
    const Model model = load_model(name);
    EXPECT_EQ(parse_model(to_toml(model), "here"), model);
  }
  Model odd = parse_model(valid, "here");
  odd.source = "back\\slash, \"quotes\" and \u00fcmlauts";
  odd.published_parameters = 0.1;
  EXPECT_EQ(parse_model(to_toml(odd), "here"), odd);
}

TEST(Models, AreReadFromFilesWhoseErrorsNameFileAndLine) {
  // gtest_discover_tests runs each test in a process of its own, maybe at the same time.
  const std::filesystem::path path = std::filesystem::temp_directory_path() /
                                     ("isoscale-" + std::to_string(::getpid()) + "-model.toml");
  const auto write = [&](std::string_view text) { std::ofstream{path} << text; };
  const auto refusal = [&] { return usage_error([&] { (void)load_model(path.string()); }); };
  EXPECT_THAT(refusal(), AllOf(HasSubstr("cannot read the model file"), HasSubstr("No such file")));
  std::filesystem::create_directory(path);
  EXPECT_THAT(refusal(), HasSubstr("is a directory"));
  std::filesystem::remove(path);
  write(valid);
  EXPECT_EQ(load_model(path.string()), parse_model(valid, "here"));
  write(with("heads", "heads = \"many\""));
  EXPECT_THAT(refusal(),
              AllOf(HasSubstr("-model.toml:5: "), HasSubstr("heads must be a whole number")));
  write(std::string(1'500'000, '#'));
  EXPECT_THAT(refusal(), HasSubstr("larger than"));
  std::filesystem::remove(path);
}

TEST(Models, UnknownNamesGiveTheNearestAndAllAndAreEchoedShort) {
  EXPECT_THAT(usage_error([] { (void)load_model("gpt-13"); }),
              AllOf(HasSubstr("unknown model 'gpt-13'"), HasSubstr("did you mean 'gpt-13b'?"),
                    HasSubstr("tiny, gpt-125m, gpt-1.3b"), HasSubstr(".toml")));
  EXPECT_THAT(usage_error([] { (void)load_model("Llama-8B"); }),
              HasSubstr("did you mean 'llama3-8b'?"));
  EXPECT_THAT(usage_error([] { (void)load_model("resnet50"); }), Not(HasSubstr("did you mean")));
  EXPECT_THAT(usage_error([] { (void)load_model(""); }), HasSubstr("unknown model ''"));
  const std::string message =
      usage_error([] { (void)load_model("\x1b[31m" + std::string(1'000'000, 'x')); });
  EXPECT_THAT(message, HasSubstr("'\\x1b[31mxxx"));
  EXPECT_LT(message.size(), 500U);
}

TEST(Models, SayWhyTheyAreRefused) {
  struct Refusal {
    std::string_view key, line, message;
  };
  for (const Refusal& one : std::initializer_list<Refusal>{
           {"hidden", "", "missing: hidden (hidden size)"},
           {"hidden", "hidden = 9\nbatch = -1", "batch is -1, but must lie between 0 and"},
           {"hidden", "hiden = 8", "m.toml:3: unknown key 'hiden'; did you mean 'hidden'?"},
           {"ffn", "ffn = 0", "m.toml:4: ffn is 0, but must lie between 1 and 16777216"},
           {"ffn", "ffn = 9223372036854775807", "ffn is 9223372036854775807"},
           {"ffn", "ffn = 9223372036854775808", "m.toml:4: not valid TOML"},
           {"ffn", "ffn = 32.0", "ffn must be a whole number"},
           {"ffn", "ffn = [32]", "ffn must be a whole number"},
           {"ffn", "ffn = ", "m.toml:4: not valid TOML"},
           {"ffn", "hidden = 8", "not valid TOML"},  // a second time
           {"heads", "heads = 5", "kv_heads = 2 does not divide heads = 5"},
           {"head_size", "head_size = 16777216", "heads x head_size = 4 x 16777216"},
           {"gated_mlp", "gated_mlp = 1", "gated_mlp must be true or false"},
           {"name", "name = \"\"", "name is empty"},
           {"name", "name = \"a/b\"", "name is 'a/b'; use at most 64"},
           {"name", "name = \"a\\u0000b\"", "name holds a control character"},
           {"source", "source = 1", "source must be a string"},
           {"source", "source = \"\\u001b[2J\"", "source holds a control character"},
           {"published_parameters", "published_parameters = -1", "must be 0 or more"},
           {"published_parameters", "published_parameters = nan", "must be 0 or more"},
           {"published_parameters", "published_parameters = inf", "must be 0 or more"},
           {"published_parameters", "published_parameters = \"7B\"", "must be a number"}}) {
    EXPECT_THAT(usage_error([&] { (void)parse_model(with(one.key, one.line), "m.toml"); }),
                AllOf(HasSubstr("m.toml:"), HasSubstr(std::string{one.message})))
        << one.line;
  }
}

TEST(Models, NeedFourKeysOnly) {
  const Model model =
      parse_model("layers = 2\nhidden = 64\nheads = 4\nsequence = 16\n", "/some/my model.toml");
  EXPECT_EQ(model.name, "mymodel");
  EXPECT_EQ(model.ffn, 256);
  EXPECT_EQ(model.kv_heads, 4);
  EXPECT_EQ(model.head_size, 16);
  EXPECT_EQ(model.vocabulary, 50304);
  EXPECT_EQ(model.batch, 0);
  EXPECT_FALSE(model.gated_mlp);
  EXPECT_TRUE(model.tied_embedding);
  EXPECT_EQ(parse_model(to_toml(model), "elsewhere.toml"), model);
  const auto five_heads = [] {
    (void)parse_model("layers = 2\nhidden = 64\nheads = 5\nsequence = 16\n", "m.toml");
  };
  EXPECT_THAT(usage_error(five_heads), HasSubstr("heads = 5 does not divide hidden = 64"));
}

TEST(Models, AllThatIsWrongIsToldAtOnce) {
  const std::string message =
      usage_error([] { (void)parse_model("hiden = 64\nffn = 0\nheads = \"many\"\n", "m.toml"); });
  for (const char* const part : {"m.toml:1: unknown key 'hiden'; did you mean 'hidden'?",
                                 "m.toml:2: ffn is 0", "m.toml:3: heads must be a whole number",
                                 "missing: layers", "hidden (hidden size)", "sequence"}) {
    EXPECT_THAT(message, HasSubstr(part));
  }
}

TEST(Models, KeysNameTheirDefaults) {
  int needed = 0;
  for (const ModelKey& key : model_keys()) {
    EXPECT_FALSE(key.meaning.empty());
    needed += key.fallback.empty() ? 1 : 0;
  }
  EXPECT_EQ(needed, 4);
}

TEST(Models, HaveTheBatchOfTheirSource) {
  // Tokens of arXiv 2005.14165, Table 2.1, over 2048, to the nearest multiple of 256.
  for (const auto& [name, tokens] :
       {std::pair{"gpt-125m", 0.5e6}, std::pair{"gpt-1.3b", 1e6}, std::pair{"gpt-6.7b", 2e6},
        std::pair{"gpt-13b", 2e6}, std::pair{"gpt-175b", 3.2e6}}) {
    EXPECT_EQ(load_model(name).batch, 256 * std::lround(tokens / 2048 / 256)) << name;
  }
  EXPECT_EQ(load_model("llama3-70b").batch, 0);  // none published
}

TEST(Models, TextThatIsNoTomlIsRefused) {
  EXPECT_THAT(usage_error([] { (void)parse_model("\xff\xfe", "m.toml"); }),
              HasSubstr("not valid TOML"));
  EXPECT_THAT(usage_error([] { (void)parse_model(std::string(100'000, '['), "m.toml"); }),
              HasSubstr("not valid TOML"));
  EXPECT_THAT(usage_error([] { (void)parse_model("", "m.toml"); }), HasSubstr("missing"));
}

}  // namespace
}  // namespace isoscale::workloads
