// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// The options of workloads: their values, and the batches and meshes that fit them.

#include "base/text.hpp"
#include "stack_samples.hpp"

namespace isoscale::workloads {
namespace {

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

TEST(Precision, AndScalingHaveNames) {
  using enum Precision;
  const std::vector all{f64, f32, tf32, f16, bf16, fp8};
  const std::vector<std::string_view> texts{"f64", "f32", "tf32", "f16", "bf16", "fp8"};
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(name(all[i]), texts[i]);
    EXPECT_EQ(program::parse_precision(texts[i]), all[i]);
  }
  for (const std::string_view text : {"bf17", "", "F32", "float", "int8"}) {
    testing_support::expect_words(
        testing_support::refusal([&] { (void)program::parse_precision(text); }),
        {"unknown dtype", "f64, f32, tf32, f16", "bf16, fp8"});
  }
  EXPECT_EQ(name(Scaling::strong), "strong");
  EXPECT_EQ(name(Scaling::weak), "weak");
}

Request planned_with(Options options) {
  Request base = request_of("", 8);
  base.options = std::move(options);
  return base;
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
            Request base = planned_with({});
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
      (void)fit(find_workload("dp"), planned_with(options), {}, ranks, Scaling::strong);
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
