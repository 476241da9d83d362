// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// The models and the options of workloads: their values, and the batches and meshes that fit them.
#include <fstream>

#include "base/text.hpp"
#include "stack_samples.hpp"
#include "tests/support/scratch_directory.hpp"
#include "workloads/api/toml_files.hpp"

namespace isoscale::workloads {
namespace {

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
  const auto refusal = [&] {
    return testing_support::usage_error([&] { (void)load_model(path.string()); });
  };
  testing_support::expect_words(refusal(), {"model file", "No such file"});
  std::filesystem::create_directory(path);
  EXPECT_THAT(refusal(), HasSubstr("is a directory"));
  std::filesystem::remove(path);
  write(valid);
  EXPECT_EQ(load_model(path.string()), parse_model(valid, "here"));
  write(with("heads", "heads = \"many\""));
  testing_support::expect_words(refusal(), {"/model.toml:5: ", "heads", "a whole number"});
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
    testing_support::expect_words(
        testing_support::usage_error([&] { (void)parse_model(with(key, line), "m.toml"); }),
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
        return testing_support::usage_error([&] { (void)parse_model(text, "m.toml"); });
      });
}

struct Typed {
  bool overlap = false;
  std::uint64_t bucket = 0, any = 1;
  std::optional<long long> batch{};
  int level = 0;
  enum class Mode : std::uint8_t { slow, fast } mode{};
  std::vector<std::string> parts{};
  std::string text{};
};

std::string read_text(std::string_view key, std::string_view text) {
  if (text.starts_with("none") || text.starts_with("any")) return std::string{text};
  throw usage_error("option {} = {}: it begins with none or any", key, base::quoted(text));
}

const std::array table{
    option::toggle<&Typed::overlap>("overlap", "on", "a"),
    option::bytes<&Typed::bucket>("bucket", "25MiB", {1024, 1 << 30}, "b"),
    option::bytes<&Typed::any>("any", "0", {}, "b"),
    option::integer<&Typed::batch>("batch", "", {1}, "c"),
    option::integer<&Typed::level>("level", "-1", {-2, 9}, "d"),
    option::choice<&Typed::mode>("mode", "slow", {"slow", "fast"}, "e"),
    option::list<&Typed::parts>("parts", "a,b", {"a", "b", "c"}, "f"),
    option::parsed<&Typed::text, read_text>("text", "none", "g"),
};
const OptionSpec& spec(std::string_view key) { return find_option(table, key); }

std::string refusal(std::string_view key, std::string_view value) {
  return testing_support::usage_error([&] { validate(spec(key), value); });
}

TEST(Options, AcceptWhatTheTableSays) {
  for (const Options& options :
       {"overlap=on bucket=1KiB any=0 batch=1 level=-2"_options,
        "overlap=off bucket=1GiB batch=9223372036854775807 level=9"_options,
        "bucket=1024 any=9223372036854775807"_options}) {
    for (const auto& [key, value] : options) {
      EXPECT_NO_THROW(validate(spec(key), value)) << key << " = " << value;
    }
  }
  EXPECT_EQ(accepted(spec("overlap")), "on|off");
  EXPECT_THAT(accepted(spec("batch")), HasSubstr("at least 1"));
  EXPECT_THAT(accepted(spec("level")), HasSubstr("from -2 to 9"));
  EXPECT_THAT(accepted(spec("any")), HasSubstr("bytes, such as 25MiB"));
}

TEST(Options, RefusalsNameKeyValueAndWhatIsAccepted) {
  using Given = std::pair<std::string, std::string>;
  testing_support::expect_words_of<Given>(
      {{{"overlap", "offf"}, {"option overlap = 'offf'", "did you mean 'off'?", "takes on|off"}},
       {{"overlap", "ON"}, {"it takes on|off"}},
       {{"overlap", ""}, {"empty", "it takes on|off"}},
       {{"batch", "0"}, {"option batch = '0'", "too small", "of at least 1"}},
       {{"level", "10"}, {"too large", "from -2 to 9"}},
       {{"bucket", "1023"}, {"too small"}},
       {{"bucket", "2GiB"}, {"too large"}},
       {{"bucket", "64M"}, {"option bucket", "ambiguous", "MiB"}},
       {{"bucket", "-1"}, {"negative"}},
       {{"text", "some"}, {"option text = 'some'", "begins with none or any"}}},
      [](const Given& given) { return refusal(given.first, given.second); });
  for (const char* const text : {"x", "1.5", "1e3", "+1", " 1", "1 ", "0x10", "9223372036854775808",
                                 "99999999999999999999999999", "4MiB"}) {
    EXPECT_THAT(refusal("batch", text), HasSubstr("not a whole number")) << text;
  }
}

TEST(Options, HostileValuesAreEchoedShortAndClean) {
  for (const char* const key : {"overlap", "bucket", "batch"}) {
    const std::string message = refusal(key, "\x1b]0;" + std::string(1'000'000, '9'));
    EXPECT_THAT(message, HasSubstr("\\x1b"));
    EXPECT_LT(message.size(), 300U);
    EXPECT_THAT(refusal(key, std::string_view{"4\0", 2}), HasSubstr("\\x00"));
  }
}

TEST(Options, UnknownKeyGivesTheNearestAndWhereToLook) {
  testing_support::expect_words(
      testing_support::refusal([] { validate("dp", table, "buckets=1MiB"_options); }),
      {"no option 'buckets'", "did you mean 'bucket'?", "isoscale list options dp"});
  EXPECT_THROW(validate("dp", table, "batch=x"_options), base::UsageError);
  EXPECT_NO_THROW(validate("dp", table, "batch=8 overlap=off"_options));
}

TEST(TypedOptions, HaveWhatWasGivenOrTheDefault) {
  const auto values = [](const Options& given) {
    const auto typed = typed_options<Typed>(table, given);
    return std::tuple(typed.overlap, typed.bucket, typed.any, typed.batch, typed.level, typed.mode,
                      typed.parts, typed.text);
  };
  using Parts = std::vector<std::string>;
  EXPECT_EQ(values("overlap=off batch=48 mode=fast parts=c"_options),
            std::tuple(false, 26'214'400U, 0U, 48, -1, Typed::Mode::fast, Parts{"c"}, "none"));
  EXPECT_EQ(values({}), std::tuple(true, 26'214'400U, 0U, std::nullopt, -1, Typed::Mode::slow,
                                   Parts{"a", "b"}, "none"));
  EXPECT_THROW((void)typed_options<Typed>(table, "level=x"_options), base::UsageError);
}

TEST(Options, HaveNoTextIfTheyAreAbsent) {
  const Options given{{"overlap", "off"}};
  EXPECT_EQ(option_text(table, given, "overlap"), "off");
  EXPECT_EQ(option_text(table, given, "batch"), "");
  EXPECT_EQ(all_options(table, given).at("overlap"), "off");
  EXPECT_TRUE(all_options(table, given).contains("level"));
  EXPECT_FALSE(all_options(table, given).contains("batch"));
  EXPECT_THROW((void)option_text(table, given, "typo"), std::logic_error);
}

TEST(Precision, IsReadByItsName) {
  using enum Precision;
  for (const Precision one : {f64, f32, tf32, f16, bf16, fp8}) {
    EXPECT_EQ(program::parse_precision(name(one)), one);
  }
  for (const std::string_view text : {"bf17", "", "F32", "float", "int8"}) {
    testing_support::expect_words(
        testing_support::refusal([&] { (void)program::parse_precision(text); }),
        {"unknown dtype", "f64, f32, tf32, f16", "bf16, fp8"});
  }
}

/// Every mesh of `ranks` ranks on some of the axes, as a user names it.
std::vector<mesh::Request> meshes_of(int ranks, mesh::AxisSet axes) {
  std::vector<std::pair<mesh::Request, int>> found{{{}, ranks}};  // and the ranks left
  for (const mesh::Axis axis : mesh::all_axes) {
    if (!axes.contains(axis)) continue;
    std::vector<std::pair<mesh::Request, int>> longer;
    for (const auto& [begun, left] : found) {
      for (int extent = 1; extent <= left; ++extent) {
        if (left % extent != 0) continue;
        mesh::Request request = begun;
        if (extent > 1) request[axis] = extent;
        longer.emplace_back(request, left / extent);
      }
    }
    found = std::move(longer);
  }
  std::vector<mesh::Request> meshes{{}};
  for (const auto& [request, left] : found) {
    if (left == 1) meshes.push_back(request);
  }
  return meshes;
}

bool knows(const Workload& workload, std::string_view key) {
  return std::ranges::find(workload.options, key, &OptionSpec::key) != workload.options.end();
}

struct Tally {
  int accepted = 0, numbers = 0, meshes = 0;
};

/// Empty when the call is accepted, else its refusal.
std::string fit_refusal(const Workload& workload, const Request& base, const mesh::Request& mesh,
                        int ranks) {
  return testing_support::refusal(
      [&] { EXPECT_EQ(fit(workload, base, mesh, ranks, Scaling::strong).mesh.size(), ranks); });
}

/// One call: if it is refused, the same call must accept what the refusal suggests.
void try_fit(const Workload& workload, const Request& base, const mesh::Request& mesh, int ranks,
             Tally& tally) {
  try {
    static_cast<void>(fit(workload, base, mesh, ranks, Scaling::strong));
    ++tally.accepted;
  } catch (const NumberError& error) {
    ++tally.numbers;
    EXPECT_FALSE(error.suggested().empty()) << workload.name << ": " << error.what();
    for (const long long number : error.suggested()) {
      Request other = base;
      other.options[error.key()] = std::to_string(number);
      EXPECT_EQ(fit_refusal(workload, other, mesh, ranks), "")
          << workload.name << ": " << error.what();
    }
  } catch (const mesh::MeshError& error) {
    ++tally.meshes;
    if (!error.nearest()) return;
    const mesh::Request nearest = mesh::parse_request(mesh::to_text(*error.nearest()));
    EXPECT_EQ(fit_refusal(workload, base, nearest, ranks), "")
        << workload.name << ": " << error.what();
  } catch (const base::UsageError&) {
    return;  // of another option, which suggests nothing
  }
}

TEST(Fit, AcceptsEveryBatchAndMeshThatItSuggests) {
  std::mt19937_64 random{20261128};
  for (const Workload& workload : registry()) {
    Tally tally;
    const int most_batch = knows(workload, "batch") && !workload.is_bench() ? 64 : 0;
    const int most_microbatch = knows(workload, "microbatch") ? 8 : 0;
    for (int ranks = 1; ranks <= 9; ++ranks) {
      std::vector<mesh::Request> meshes = meshes_of(ranks, workload.axes);
      for (const int extent : {2, 3, 4, 7}) {
        for (const mesh::Axis axis : mesh::all_axes) {
          if (workload.axes.contains(axis)) meshes.push_back({{axis, extent}});
        }
      }
      for (const mesh::Request& mesh : meshes) {
        for (int batch = most_batch > 0 ? 1 : 0; batch <= most_batch; ++batch) {
          for (int microbatch = 0; microbatch <= most_microbatch; ++microbatch) {
            if (random() % 10 != 0 && !every_case()) continue;
            Request base{.model = model_of("")};
            if (batch > 0) base.options["batch"] = std::to_string(batch);
            if (microbatch > 0) base.options["microbatch"] = std::to_string(microbatch);
            try_fit(workload, base, mesh, ranks, tally);
          }
        }
      }
    }
    EXPECT_GT(tally.accepted, 0) << workload.name;
    EXPECT_GT(tally.meshes, 0) << workload.name;
    if (most_batch > 0 && workload.axes.contains(mesh::Axis::dp)) {
      EXPECT_GT(tally.numbers, 0) << workload.name;
    }
  }
}

TEST(Fit, LooksAtReplicasAndMicrobatchesTogether) {
  const auto suggested = [](const Options& options, int ranks) -> std::vector<long long> {
    try {
      const Request base{.model = model_of(""), .options = options};
      (void)fit(find_workload("dp"), base, {}, ranks, Scaling::strong);
    } catch (const NumberError& error) {
      return error.suggested();
    }
    return {};
  };
  EXPECT_THAT(suggested({}, 3), ElementsAre(60, 72));
  EXPECT_THAT(suggested("batch=64"_options, 3), ElementsAre(60, 72));
  EXPECT_THAT(suggested("batch=1"_options, 2), ElementsAre(2));
  EXPECT_THAT(suggested("microbatch=4 microbatches=16"_options, 3), ElementsAre(15, 18));
}

TEST(Fit, NamesHybridWhereAWorkloadHasNoMeshOfItsOwn) {
  Request base = request_of("", 8);
  base.model.heads = base.model.kv_heads = 15;
  EXPECT_THAT(fit_refusal(find_workload("tp"), base, {}, 2), HasSubstr("hybrid --mesh dp=2"));
  EXPECT_EQ(fit_refusal(find_workload("hybrid"), base, {{mesh::Axis::dp, 2}}, 2), "");
}

}  // namespace
}  // namespace isoscale::workloads
