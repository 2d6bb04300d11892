// gemm: from arrays of matrices, or sizes, to a GemmProblem.
#include <algorithm>

#include "cli/operations/group_task.h"
#include "cli/operations/notes.h"
#include "cli/operations/subject.h"
#include "cli/options/epilogue_options.h"
#include "cli/output/text.h"
#include "cosmati/epilogue/parse.h"
#include "cosmati/ops/gemm.h"
#include "src/plan/gemm/model.h"

namespace cosmati::cli {

namespace {

// (rows, columns) with the first index fastest, as in BLAS; a batch is slowest.
TensorDescription column_major_matrix(DataType type, Index batch, Index rows, Index columns) {
  checked_size({batch, rows, columns}, type);
  if (batch == 0) return describe(type, column_major({rows, columns}));
  return {type, {{batch, rows, columns}, {rows * columns, 1, rows}}};
}

class Gemm final : public Subject {
 public:
  std::unique_ptr<Subject> clone() const override { return std::make_unique<Gemm>(*this); }
  std::string name() const override { return "gemm"; }
  std::string about() const override { return "matrix product: d = epilogue(a * b, c, ...)"; }
  std::string run_example() const override {
    return "--a A.npy --b B.npy --operand bias=b.npy --epilogue \"relu(alpha*acc + bias[n])\" --set "
           "alpha=0.5 "
           "--out D.npy";
  }
  std::string size_example() const override { return "--size 127x65x333 --layout tn"; }

  void add_parameters(Options& options) override {
    options.text("--layout", layout_, "LETTERS",
                 "nn, nt, tn or tt: first letter t if the file of a is (K,M), second letter t if "
                 "that of b is (N,K); matrices without files are column-major, as in BLAS: with tn both are "
                 "contiguous along k (default: nn)");
    options.text(
        "--group", group_, "MxNxK,...",
        "products of these sizes in one launch; COUNTxMxNxK repeats a size; run accepts 'files', with "
        "lists for --a, --b, --out; verify also accepts 'random'");
    options.flag("--by-pointers", by_pointers_, "the batch as arrays of pointers, one per matrix");
    add_epilogue_options(options, epilogue_, true);
  }

  std::vector<FileOption> files() const override {
    return {{"a", TypeRole::a, false,
             "(M,K), or (K,M) where the layout's first letter is t; a leading axis is a batch"},
            {"b", TypeRole::b, false, "(K,N), or (N,K) where its second letter is t"},
            {"c", TypeRole::c, false,
             "(M,N); added to the product unless --epilogue or --set beta says otherwise"},
            {"out", TypeRole::a, true, "(M,N), or (batch,M,N)"}};
  }
  bool has_epilogue() const override { return true; }
  bool sums_products() const override { return true; }
  std::vector<std::string> letters() const override { return {"m", "n", "k", "batch"}; }
  std::size_t fewest_sizes() const override { return 3; }

  Inputs inputs_of_size(std::vector<Index> const& size, TypeChoice const& types) const override {
    DataType const type = types.compute == "tf32" ? DataType::tf32 : DataType::f32;
    Inputs inputs;
    inputs.made_here = true;
    auto const add = [&](std::string const& a, std::string const& b, Index m, Index n, Index k, Index batch) {
      inputs.add(a, column_major_matrix(types.type_of(types.a, type), batch, transposed(0) ? k : m,
                                        transposed(0) ? m : k));
      inputs.add(b, column_major_matrix(types.type_of(types.b, type), batch, transposed(1) ? n : k,
                                        transposed(1) ? k : n));
    };
    if (group_.empty()) add("a", "b", size[0], size[1], size[2], size[3] == 1 ? 0 : size[3]);
    for (std::size_t i = 0; !group_.empty() && 3 * i < size.size(); ++i)
      add(name_in_group("a", i), name_in_group("b", i), size[3 * i], size[3 * i + 1], size[3 * i + 2], 0);
    return inputs;
  }

  // The sizes of all members concatenated, three extents each.
  std::vector<std::vector<Index>> sizes_of_parameters() const override;
  bool takes_lists() const override { return !group_.empty(); }

  std::vector<Index> draw(nets::Random& random) override {
    drawn_ = true;
    if (layout_.empty()) layout_ = draw_from<std::string>(random, {"nn", "nt", "tn", "tt"});
    if (epilogue_.expression.empty() && epilogue_.settings.empty()) {
      epilogue_.expression = draw_from<std::string>(
          random, {"alpha*acc + beta*c", "alpha*acc + beta*c", "acc", "relu(acc + bias[n])",
                   "tanh(alpha*acc) * scale[m] + bias[n]", "gelu(acc + bias[m]) + residual[m, n]",
                   "let t = acc + bias[n]; store(pre, t); relu(t)"});
      epilogue_.settings = {"alpha=0.625", "beta=" + draw_from<std::string>(random, {"0", "1", "-1.5"})};
    }
    if (!group_.empty()) return draw_group(random);
    // Beside the edges of tiles, multiples of 8, which the copy engine reads in every layout.
    auto const extent = [&] {
      Index const drawn =
          draw_from<Index>(random, {0, 0, 1, 2, 3, 7, 16, 17, 31, 64, 65, 127, 128, 131, 257});
      return drawn > 0 ? drawn : 8 * draw_between(random, 1, 40);
    };
    Index m = extent(), n = extent(), k = extent();
    if (drawn_for_ == "gemv") (draw_between(random, 0, 1) == 0 ? m : n) = draw_between(random, 1, 8);
    if (drawn_for_ == "tiny") {
      auto const tiny = [&] { return draw_from<Index>(random, {1, 2, 3, 7, 8, 15, 16, 17, 31, 32}); };
      m = tiny(), n = tiny(), k = draw_between(random, 0, 3) == 0 ? k % 256 : tiny();
    }
    Index const batch = draw_from<Index>(random, {1, 1, 1, 3});
    drawn_by_pointers_ = batch > 1 && draw_between(random, 0, 1) == 0;
    return {m, n, k, batch};
  }

  void draw_for(std::string const& kernel) override { drawn_for_ = kernel; }

  Job job(Inputs const& inputs, Common const& common) const override;
  std::vector<std::string> kernels(Backend backend) const override {
    return kernel_names<GemmProblem>(backend);
  }

 private:
  // One product, alone or in a group.
  struct Product {
    GemmProblem problem;
    Notes notes;
    std::vector<double> scalars;
    std::vector<std::string> warnings;
    bool batched = false;
  };
  Product product(Inputs const& inputs, Common const& common) const;
  Job group_job(Inputs const& inputs, Common const& common) const;

  // One large member, small ones, and some empty ones, as for a mixture of experts.
  static std::vector<Index> draw_group(nets::Random& random) {
    std::vector<Index> sizes;
    Index const members = draw_between(random, 1, 9);
    Index const n = draw_from<Index>(random, {1, 8, 32, 40, 65, 96}),
                k = draw_from<Index>(random, {1, 8, 40, 64, 72, 129});
    bool const alike = draw_between(random, 0, 1) == 0;  // all members have the same n and k
    for (Index i = 0; i < members; ++i) {
      sizes.push_back(i == 0 ? draw_from<Index>(random, {64, 129, 200})
                             : draw_from<Index>(random, {0, 1, 2, 3, 7, 16, 33, 64}));
      sizes.push_back(alike ? n : draw_from<Index>(random, {0, 1, 8, 24, 33, 64, 100}));
      sizes.push_back(alike ? k : draw_from<Index>(random, {0, 1, 5, 8, 32, 64, 104}));
    }
    return sizes;
  }

  bool transposed(std::size_t operand) const { return layout()[operand] == 't'; }
  std::string layout() const {
    return layout_.empty() ? "nn" : one_of(layout_, {"nn", "nt", "tn", "tt"}, "--layout");
  }
  // A file's array as (batch, rows, columns).
  static TensorDescription matrix(Inputs const& inputs, std::string const& name, bool transpose) {
    TensorDescription description =
        inputs.at(name, {2, 3},
                  transpose ? "(columns, rows), with or without a leading batch axis, as given by --layout"
                            : "(rows, columns), with or without a leading batch axis");
    Layout& layout = description.layout;
    if (layout.rank() == 2)
      layout = {{1, layout.extent(0), layout.extent(1)}, {layout.span(), layout.stride[0], layout.stride[1]}};
    return transpose ? reordered(description, {0, 2, 1}) : description;
  }
  static void expect_equal(Index x, Index y, std::string const& letter, Inputs const& inputs,
                           char const* first, char const* second) {
    if (x == y) return;
    throw Error(ErrorCode::bad_request, inputs.say(first) + ", gives " + letter + " = " + std::to_string(x) +
                                            ", but " + inputs.say(second) + ", gives " + letter + " = " +
                                            std::to_string(y) +
                                            "; they must be equal (--layout determines the axes)");
  }
  // The common batch of all operands; operands of batch 1 are shared.
  static Index common_batch(Inputs const& inputs,
                            std::vector<std::pair<char const*, TensorDescription*>> const& operands) {
    Index batch = 1;
    char const* from = "a";
    for (auto const& [name, operand] : operands)
      if (operand->extent(0) != 1) {
        if (batch != 1) expect_equal(batch, operand->extent(0), "batch", inputs, from, name);
        batch = operand->extent(0);
        from = name;
      }
    for (auto const& [name, operand] : operands)
      if (operand->extent(0) != batch) {
        operand->layout.shape[0] = batch;
        operand->layout.stride[0] = 0;
      }
    return batch;
  }

  std::string layout_, group_;
  bool by_pointers_ = false, drawn_by_pointers_ = false;
  std::string drawn_for_;
  bool drawn_ = false;  // for random problems; the epilogue may or may not use c
  EpilogueText epilogue_;
};

std::vector<std::vector<Index>> Gemm::sizes_of_parameters() const {
  if (group_.empty() || group_ == "random" || group_ == "files") return {};
  std::vector<Index> all;
  for (std::string const& word : split(group_, ',')) {
    auto const size = parse_sizes(word, 3, 4, "m x n x k, or count x m x n x k", "--group");
    if (size.size() != 1)
      throw Error(ErrorCode::bad_request, "--group " + group_ + ": a member has one size, not a range");
    auto const& extents = size.front();
    bool const counted = extents.size() == 4;
    for (Index i = 0; i < (counted ? extents[0] : 1); ++i)
      all.insert(all.end(), extents.end() - 3, extents.end());
    if (all.size() > 3 * 65536) throw Error(ErrorCode::bad_request, "--group: more than 65536 members");
  }
  for (Index const extent : all)
    if (extent < 0 || extent > Index{1} << 40)
      throw Error(ErrorCode::bad_request,
                  "extent " + std::to_string(extent) + " of a size is invalid; valid values: 0 to 2^40");
  return {all};
}

Gemm::Product Gemm::product(Inputs const& inputs, Common const& common) const {
  BoundEpilogue epilogue(epilogue_, epilogue::gemm_indices, inputs.made_here, inputs.has("c"));
  GemmProblem problem;
  problem.a = matrix(inputs, "a", transposed(0));
  problem.b = matrix(inputs, "b", transposed(1));
  Index const m = problem.a.extent(1), k = problem.a.extent(2), n = problem.b.extent(2);
  expect_equal(k, problem.b.extent(1), "K", inputs, "a", "b");
  check_accumulator(common.types, problem.a.type, problem.b.type, true);
  problem.by_pointers = (by_pointers_ || drawn_by_pointers_) && group_.empty();
  problem.compute = compute_mode_of(common.types, problem.a.type, problem.b.type);
  if (common.types.accumulator == name_of(DataType::f16)) problem.accumulator = DataType::f16;
  DataType const type = output_type(common.types, problem.a.type, problem.b.type, true);

  std::vector<std::pair<char const*, TensorDescription*>> operands{{"a", &problem.a}, {"b", &problem.b}};
  bool const c_given = inputs.has("c") && epilogue.uses_source();
  bool batched = inputs.at("a").layout.rank() == 3 || inputs.at("b").layout.rank() == 3;
  if (c_given) {
    problem.c = matrix(inputs, "c", false);
    expect_equal(m, problem.c.extent(1), "M", inputs, "a", "c");
    expect_equal(n, problem.c.extent(2), "N", inputs, "b", "c");
    operands.emplace_back("c", &problem.c);
    batched = batched || inputs.at("c").layout.rank() == 3;
  }
  if (!common.types.c.empty() && !epilogue.uses_source() && !drawn_)
    throw Error(ErrorCode::bad_request, "--c-type " + common.types.c + ": the epilogue '" + epilogue.text() +
                                            "' does not use c; --set beta=1 adds it");
  Index const batch = common_batch(inputs, operands);
  checked_size({batch, m, n}, type);
  problem.d = inputs.made_here ? column_major_matrix(type, batch, m, n) : describe(type, Shape(batch, m, n));
  if (epilogue.uses_source() && !c_given && inputs.made_here) {
    problem.c = problem.d;
    problem.c.type = common.types.type_of(common.types.c, type);
  }
  problem.epilogue = epilogue.complete(inputs, {{"batch", batch}, {"m", m}, {"n", n}}, problem.d);

  Notes notes = notes_of(problem, epilogue, layout(), epilogue_.expression.empty() ? "" : epilogue.text());
  notes.transposition = layout();
  return {std::move(problem), notes, epilogue.scalars(), epilogue.warnings(), batched};
}

Job Gemm::job(Inputs const& inputs, Common const& common) const {
  if (!group_.empty()) return group_job(inputs, common);
  Product one = product(inputs, common);
  Job job;
  std::vector<int> const order = one.batched ? std::vector<int>{0, 1, 2} : std::vector<int>{1, 2};
  job.outputs.push_back({"d", "out", order});
  for (auto const& store : one.problem.epilogue.expression.stores())
    job.outputs.push_back({"store " + store.name, "store " + store.name, order});
  job.warnings = one.warnings;
  job.task = make_task(std::move(one.problem), one.notes, {}, one.scalars);
  return job;
}

Job Gemm::group_job(Inputs const& inputs, Common const& common) const {
  GroupedGemmProblem group;
  Notes notes;
  std::vector<double> scalars;
  Job job;
  double operations = 0;
  std::string sizes;
  for (std::size_t i = 0; inputs.has(name_in_group("a", i)); ++i) {
    Inputs own;
    own.made_here = inputs.made_here;
    own.wanted = inputs.wanted;
    std::string const suffix = name_in_group("", i);
    for (auto const& [name, description] : inputs.all())
      if (name.ends_with(suffix))
        own.add(name.substr(0, name.size() - suffix.size()), inputs.at(name), "--" + name);
    Product one = product(own, common);
    if (one.batched)
      throw Error(ErrorCode::bad_request,
                  "--group: member " + std::to_string(i) + " has a batch; a member is one matrix");
    job.outputs.push_back({name_in_group("d", i), name_in_group("out", i), {1, 2}});
    for (auto const& store : one.problem.epilogue.expression.stores())
      job.outputs.push_back(
          {name_in_group("store " + store.name, i), name_in_group("store " + store.name, i), {1, 2}});
    if (i == 0) job.warnings = one.warnings, scalars = one.scalars, notes = one.notes;
    notes.terms = std::max(notes.terms, one.notes.terms);
    notes.exact = notes.exact && one.notes.exact;
    operations += one.notes.operations;
    std::string const size = one.notes.label.substr(0, one.notes.label.find(' '));
    if (i < 4) sizes += (i == 0 ? "" : ",") + size;
    if (i == 4) sizes += ",...";
    group.members.push_back(std::move(one.problem));
  }
  notes.operations = operations;
  std::size_t const space = notes.label.find(' ');
  notes.label = std::to_string(group.members.size()) + " in a group: " + sizes +
                (space == std::string::npos ? "" : notes.label.substr(space));
  notes.axes.clear();
  notes.transposition.clear();  // peers compute single products only
  job.task = make_group_task(std::move(group), notes, scalars);
  return job;
}

}  // namespace

template <>
Subjects subjects_of<GemmProblem>() {
  return list_of(Gemm());
}

}  // namespace cosmati::cli
