// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <fstream>

#include "tests/support/scratch_directory.hpp"
#include "words.hpp"
#include "workloads/api/toml_files.hpp"

namespace isoscale::workloads {
namespace {

using testing_support::expect_words;
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

/// In the order of their size; the batches are the tokens of arXiv 2005.14165, Table 2.1, over
/// 2048, to the nearest multiple of 256; llama's is not published.
TEST(Models, HaveTheParametersBatchAndShapeThatTheirSourceSays) {
  std::vector<std::string> names{"tiny"};
  for (const auto& [name, parameters, tokens] : {std::tuple{"gpt-125m", 125e6, 0.5e6},
                                                 {"gpt-1.3b", 1.3e9, 1e6},
                                                 {"gpt-6.7b", 6.7e9, 2e6},
                                                 {"llama3-8b", 8.03e9, 0.0},
                                                 {"gpt-13b", 13e9, 2e6},
                                                 {"llama3-70b", 70.6e9, 0.0},
                                                 {"gpt-175b", 174.6e9, 3.2e6}}) {
    SCOPED_TRACE(name);
    names.emplace_back(name);
    const Model model = load_model(name);
    EXPECT_EQ(model.name, name);
    EXPECT_THAT(model.source, HasSubstr("arXiv"));
    EXPECT_DOUBLE_EQ(model.published_parameters, parameters);
    EXPECT_NEAR(parameter_count(model) / parameters, 1.0, 0.02);
    EXPECT_EQ(model.batch, 256 * std::lround(tokens / 2048 / 256));
    EXPECT_EQ(model.heads * model.head_size, model.hidden);
    if (!names.back().starts_with("gpt")) continue;
    EXPECT_EQ(model.ffn, 4 * model.hidden);
    EXPECT_EQ(model.kv_heads, model.heads);
    EXPECT_EQ(model.sequence, 2048);
    EXPECT_FALSE(model.gated_mlp);
  }
  EXPECT_EQ(model_names(), names);
}

TEST(Models, CountParametersExactly) {
  // The count that the model's own checkpoint has, tensor by tensor.
  EXPECT_EQ(parameter_count(load_model("llama3-8b")), 8'030'261'248.0);
  EXPECT_EQ(parameter_count(load_model("llama3-70b")), 70'553'706'496.0);
  // Small enough for pencil and paper. Per layer: QKV 8 x (12 + 2 x 6) + 24, projection 12 x 8 + 8,
  // MLP 8 x 32 + 32 and 32 x 8 + 8, two norms of 2 x 8: 904. Then the last norm, two embeddings of
  // 10 x 8, positions of 5 x 8: every number is read into its place.
  const Model mine = parse_model(valid, "here");
  EXPECT_EQ(parameter_count(mine), 2 * 904 + 16 + 160 + 40.0);
  EXPECT_EQ(std::tuple(mine.name, mine.source), std::tuple("mine", "a drawing board"));
  const Model tiny = load_model("tiny");
  EXPECT_THAT((std::vector{tiny.heads % 8, tiny.kv_heads % 8, tiny.ffn % 8, tiny.hidden % 8,
                           tiny.layers % 8, tiny.vocabulary % 8}),
              Each(0));
  EXPECT_LT(parameter_count(tiny), 2e6);
}

/// Run files have the sizes by these keys, and old ones are read by them.
TEST(Models, HaveTheSizesThatRunFilesKeep) {
  const Model model = parse_model(valid, "valid");
  std::map<std::string, int> sizes;
  for (const auto& [key, size] : model_sizes()) sizes.emplace(key, model.*size);
  EXPECT_EQ(sizes, (std::map<std::string, int>{{"hidden", 8},
                                               {"ffn", 32},
                                               {"heads", 4},
                                               {"kv_heads", 2},
                                               {"head_size", 3},
                                               {"layers", 2},
                                               {"sequence", 5},
                                               {"vocabulary", 10}}));
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
  const testing_support::ScratchDirectory directory;
  const std::filesystem::path path = directory.path() / "model.toml";
  const auto write = [&](std::string_view text) { std::ofstream{path} << text; };
  const auto refusal = [&] { return usage_error([&] { (void)load_model(path.string()); }); };
  expect_words(refusal(), {"model file", "No such file"});
  std::filesystem::create_directory(path);
  EXPECT_THAT(refusal(), HasSubstr("is a directory"));
  std::filesystem::remove(path);
  write(valid);
  EXPECT_EQ(load_model(path.string()), parse_model(valid, "here"));
  write(with("heads", "heads = \"many\""));
  expect_words(refusal(), {"/model.toml:5: ", "heads", "a whole number"});
  write(std::string(1'500'000, '#'));
  EXPECT_THAT(refusal(), HasSubstr("larger than"));
}

TEST(Models, SayWhyTheyAreRefused) {
  for (const auto& [key, line, message] :
       {std::tuple{"hidden", "", "missing: hidden (hidden size)"},
        {"hidden", "hidden = 9\nbatch = -1", "batch is -1"},
        {"hidden", "hiden = 8", "m.toml:3: unknown key 'hiden'"},
        {"ffn", "ffn = 0", "m.toml:4: ffn is 0, but must lie between 1 and 16777216"},
        {"ffn", "ffn = 9223372036854775807", "ffn is 9223372036854775807"},
        {"ffn", "ffn = 9223372036854775808", "m.toml:4: not valid TOML"},
        {"ffn", "ffn = 32.0", "a whole number"},
        {"ffn", "ffn = [32]", "a whole number"},
        {"ffn", "ffn = ", "m.toml:4: not valid TOML"},
        {"ffn", "hidden = 8", "not valid TOML"},  // a second time
        {"heads", "heads = 5", "does not divide heads"},
        {"head_size", "head_size = 16777216", "= 4 x 16777216"},
        {"gated_mlp", "gated_mlp = 1", "be true or false"},
        {"name", "name = \"\"", "name is empty"},
        {"name", "name = \"a/b\"", "name is 'a/b'"},
        {"name", "name = \"a\\u0000b\"", "name holds a control"},
        {"source", "source = 1", "source must be"},
        {"source", "source = \"\\u001b[2J\"", "source holds a control"},
        {"published_parameters", "published_parameters = -1", "0 or more"},
        {"published_parameters", "published_parameters = nan", "0 or more"},
        {"published_parameters", "published_parameters = inf", "0 or more"},
        {"published_parameters", "published_parameters = \"7B\"", "be a number"}}) {
    SCOPED_TRACE(line);
    expect_words(usage_error([&] { (void)parse_model(with(key, line), "m.toml"); }),
                 {"m.toml:", message});
  }
}

TEST(Models, NeedFourKeysOnly) {
  const Model model =
      parse_model("layers = 2\nhidden = 64\nheads = 4\nsequence = 16\n", "/some/my model.toml");
  EXPECT_EQ(model.name, "mymodel");
  EXPECT_EQ(std::tuple(model.ffn, model.kv_heads, model.head_size, model.vocabulary, model.batch),
            std::tuple(256, 4, 16, 50304, 0));
  EXPECT_FALSE(model.gated_mlp);
  EXPECT_TRUE(model.tied_embedding);
  EXPECT_EQ(parse_model(to_toml(model), "elsewhere.toml"), model);
}

TEST(Models, AllThatIsWrongIsToldAtOnce) {
  testing_support::expect_words_of<std::string>(
      {{"hiden = 64\nffn = 0\nheads = \"many\"\n",
        {"m.toml:1: unknown key 'hiden'", "did you mean 'hidden'?", "m.toml:2: ffn is 0",
         "m.toml:3: heads", "missing: layers", "hidden (hidden size)", "sequence"}},
       {"layers = 2\nhidden = 64\nheads = 5\nsequence = 16\n", {"heads = 5", "hidden = 64"}},
       {"\xff\xfe", {"not valid TOML"}},
       {std::string(100'000, '['), {"not valid TOML"}},
       {"", {"missing"}}},
      [](const std::string& text) {
        return usage_error([&] { (void)parse_model(text, "m.toml"); });
      });
}

}  // namespace
}  // namespace isoscale::workloads
