// Compiles an expression to register-based instructions, and runs them on blocks of elements.
#include "cosmati/epilogue/vector_program.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "src/epilogue/apply.h"
#include "src/epilogue/vector_code.h"

namespace cosmati::epilogue {
namespace {

using detail::Instruction;
using detail::Lane;
using detail::lane_width;
using detail::VectorCode;

// Assigns each node of an expression to a value of the program.
template <class Real>
class Compiler {
 public:
  explicit Compiler(Expression const& expression) : expression_(expression), uses_(count_uses(expression)) {
    code_.first_operand = code_.first_scalar + static_cast<int>(expression.scalars().size());
    code_.first_constant = code_.first_operand + static_cast<int>(expression.operands().size());
    code_.first_result = code_.first_constant;
    for (Node const& node : expression.nodes()) code_.first_result += node.op == Op::constant ? 1 : 0;
    code_.uses_accumulator = expression.uses_accumulator();
    code_.uses_source = expression.uses_source();
  }

  VectorCode<Real> compile() {
    for (std::size_t i = 0; i < expression_.nodes().size(); ++i)
      value_.push_back(value_of(static_cast<int>(i)));
    code_.result = at(expression_.result());
    for (Store const& store : expression_.stores()) code_.stores.push_back(at(store.node));
    code_.direct = !code_.instructions.empty() && code_.result == code_.value_count() - 1 &&
                   std::find(code_.stores.begin(), code_.stores.end(), code_.result) == code_.stores.end();
    assign_registers();
    return std::move(code_);
  }

 private:
  static std::vector<int> count_uses(Expression const& expression) {
    std::vector<int> uses(expression.nodes().size());
    auto const use = [&uses](int node) {
      if (node >= 0) ++uses[static_cast<std::size_t>(node)];
    };
    for (Node const& node : expression.nodes()) std::for_each(node.operand.begin(), node.operand.end(), use);
    for (Store const& store : expression.stores()) use(store.node);
    use(expression.result());
    return uses;
  }

  int at(int node) const { return node < 0 ? -1 : value_[static_cast<std::size_t>(node)]; }
  Node const& node(int index) const { return expression_.nodes()[static_cast<std::size_t>(index)]; }

  int emit(Op op, int a, int b, int c) {
    code_.instructions.push_back({op, {a, b, c}, 0});
    return code_.value_count() - 1;
  }

  int value_of(int index) {
    Node const& current = node(index);
    auto const [a, b, c] = current.operand;
    switch (current.op) {
      case Op::constant:
        code_.constants.insert(code_.constants.end(), lane_width, static_cast<Real>(current.constant));
        return code_.first_constant + static_cast<int>(code_.constants.size()) / lane_width - 1;
      case Op::accumulator: return 0;
      case Op::source: return 1;
      case Op::scalar: return code_.first_scalar + current.slot;
      case Op::operand: return code_.first_operand + current.slot;
      case Op::greater: return emit(Op::less, at(b), at(a), -1);
      case Op::greater_equal: return emit(Op::less_equal, at(b), at(a), -1);
      case Op::clamp: return emit(Op::min, emit(Op::max, at(a), at(b), -1), at(c), -1);
      case Op::multiply:
        if (is_fused(index)) return -1;
        if (int const scalar = scalar_of_scaled_input(expression_, current); scalar >= 0)
          return emit(Op::select, at(scalar), emit(Op::multiply, at(a), at(b), -1), at(scalar));
        return emit(Op::multiply, at(a), at(b), -1);
      case Op::add:
        if (is_product_of(a, index)) return emit_product(a, b);
        if (is_product_of(b, index)) return emit_product(b, a);
        break;
      default: break;
    }
    return emit(current.op, at(a), at(b), at(c));
  }

  int emit_product(int product, int addend) {
    auto const operand = node(product).operand;
    return emit(Op::multiply, at(operand[0]), at(operand[1]), at(addend));
  }

  // A product that is used by a single sum is fused into it; if both operands of a sum qualify, the first one
  // is.
  bool is_product_of(int product, int sum) { return may_fuse(product) && fused_into(product) == sum; }
  bool is_fused(int product) const { return may_fuse(product) && fused_into(product) >= 0; }
  bool may_fuse(int product) const {
    return node(product).op == Op::multiply && uses_[static_cast<std::size_t>(product)] == 1 &&
           scalar_of_scaled_input(expression_, node(product)) < 0;
  }
  int fused_into(int product) const {
    for (std::size_t i = static_cast<std::size_t>(product) + 1; i < expression_.nodes().size(); ++i) {
      Node const& user = expression_.nodes()[i];
      if (user.op != Op::add) continue;
      auto const [a, b, c] = user.operand;
      bool const first = a == product;
      bool const second = b == product && !may_fuse(a);
      if (first || second) return static_cast<int>(i);
    }
    return -1;
  }

  // A register is reused after the last instruction that reads it; stored values and the result are kept.
  void assign_registers() {
    std::vector<int> last_use(static_cast<std::size_t>(code_.value_count()), -1);
    int const count = static_cast<int>(code_.instructions.size());
    for (int i = 0; i < count; ++i)
      for (int const input : instruction(i).input)
        if (input >= 0) last_use[static_cast<std::size_t>(input)] = i;
    for (int const store : code_.stores) last_use[static_cast<std::size_t>(store)] = count;
    last_use[static_cast<std::size_t>(code_.result)] = count;

    std::vector<int> available;
    for (int i = 0; i < count; ++i) {
      for (int k = 0; k < 3; ++k) {
        int const input = instruction(i).input[k];
        if (input < code_.first_result || last_use[static_cast<std::size_t>(input)] != i) continue;
        last_use[static_cast<std::size_t>(input)] = -1;  // an instruction may read it twice
        available.push_back(instruction(input - code_.first_result).target);
      }
      if (available.empty()) available.push_back(code_.registers++);
      instruction(i).target = available.back();
      available.pop_back();
    }
    if (code_.direct) code_.instructions.back().target = -1;
  }
  Instruction& instruction(int index) { return code_.instructions[static_cast<std::size_t>(index)]; }

  Expression const& expression_;
  std::vector<int> uses_;
  std::vector<int> value_;
  VectorCode<Real> code_;
};

template <class Real>
class Run {
 public:
  Run(VectorCode<Real> const& code, VectorArguments<Real> const& arguments, void* scratch)
      : code_(code), arguments_(arguments) {
    auto address = reinterpret_cast<std::uintptr_t>(scratch);
    address = (address + alignment - 1) / alignment * alignment;
    slots_ = reinterpret_cast<Real*>(address);
    result_slot_ = slots_ + code.value_count() * lane_width;
    registers_ = result_slot_ + lane_width;
    lanes_ = reinterpret_cast<Lane<Real>*>(registers_ + code.registers * VectorCode<Real>::block);
  }

  static std::size_t scratch_bytes(VectorCode<Real> const& code) {
    auto const values = static_cast<std::size_t>(code.value_count());
    std::size_t const elements =
        (values + 1) * lane_width + static_cast<std::size_t>(code.registers) * VectorCode<Real>::block;
    return alignment + elements * sizeof(Real) + values * sizeof(Lane<Real>);
  }

  void run(Index count) {
    prepare();
    for (Index offset = 0; offset < count; offset += VectorCode<Real>::block) {
      int const width = static_cast<int>(std::min<Index>(VectorCode<Real>::block, count - offset));
      int const rest = width % lane_width;
      if (width > rest) run_block(offset, width - rest);
      if (rest > 0) run_rest(offset + width - rest, rest);
    }
  }

 private:
  static constexpr std::size_t alignment = 64;
  static constexpr int inputs_before_scalars = 2;

  Real* slot(int value) { return slots_ + value * lane_width; }

  void set_uniform(int value, Real element) {
    std::fill_n(slot(value), lane_width, element);
    lanes_[value] = {slot(value), true};
  }

  // Calls visit(value, stream) for each input of the expression except scalars.
  template <class Visit>
  void for_each_stream(Visit visit) {
    if (code_.uses_accumulator) visit(0, arguments_.accumulator);
    if (code_.uses_source) visit(1, arguments_.source);
    for (int value = code_.first_operand; value < code_.first_constant; ++value)
      visit(value, arguments_.operands[value - code_.first_operand]);
  }

  // Computes the values that are the same for all elements.
  void prepare() {
    for (int value = 0; value < inputs_before_scalars; ++value) lanes_[value] = {nullptr, true};
    for_each_stream([this](int value, Stream<Real> stream) {
      stream.stride == 0 ? set_uniform(value, *stream.data) : void(lanes_[value] = {nullptr, false});
    });
    for (int value = code_.first_scalar; value < code_.first_operand; ++value)
      set_uniform(value, arguments_.scalars[value - code_.first_scalar]);
    for (int value = code_.first_constant; value < code_.first_result; ++value)
      lanes_[value] = {code_.constants.data() + (value - code_.first_constant) * lane_width, true};
    int value = code_.first_result;
    for (Instruction const& instruction : code_.instructions) {
      bool uniform = true;
      for (int const input : instruction.input) uniform = uniform && (input < 0 || lanes_[input].uniform);
      if (uniform) code_.execute(instruction, lanes_, slot(value), lane_width);
      lanes_[value] = {uniform ? slot(value) : target_of(instruction, nullptr), uniform};
      ++value;
    }
  }

  Real* target_of(Instruction const& instruction, Real* result) {
    return instruction.target < 0 ? result : registers_ + instruction.target * VectorCode<Real>::block;
  }

  // Runs elements offset to offset + width - 1 directly on the caller's arrays.
  void run_block(Index offset, int width) {
    for_each_stream([this, offset](int value, Stream<Real> stream) {
      if (!lanes_[value].uniform) lanes_[value].data = stream.data + offset;
    });
    execute_to(arguments_.result + offset, offset, width, width);
  }

  // Runs a remainder shorter than a vector, on padded copies of the inputs and the result.
  void run_rest(Index offset, int rest) {
    for_each_stream([this, offset, rest](int value, Stream<Real> stream) {
      if (lanes_[value].uniform) return;
      std::copy_n(stream.data + offset, rest, slot(value));
      std::fill(slot(value) + rest, slot(value) + lane_width, Real(0));
      lanes_[value].data = slot(value);
    });
    execute_to(result_slot_, offset, lane_width, rest);
    std::copy_n(result_slot_, rest, arguments_.result + offset);
  }

  // Runs `width` elements, and writes all of them to `result` but only the first `live` to the stores. The
  // stores are written before the result, which may alias an input.
  void execute_to(Real* result, Index offset, int width, int live) {
    int value = code_.first_result;
    std::size_t const count = code_.instructions.size() - (code_.direct ? 1 : 0);
    for (std::size_t i = 0; i < count; ++i, ++value) {
      Instruction const& instruction = code_.instructions[i];
      if (!lanes_[value].uniform) code_.execute(instruction, lanes_, target_of(instruction, nullptr), width);
    }
    for (std::size_t i = 0; i < code_.stores.size(); ++i)
      copy(lanes_[code_.stores[i]], arguments_.stores[i] + offset, live);
    if (code_.direct && !lanes_[value].uniform)
      code_.execute(code_.instructions.back(), lanes_, result, width);
    else
      copy(lanes_[code_.result], result, width);
  }

  static void copy(Lane<Real> from, Real* to, int width) {
    if (from.uniform)
      std::fill_n(to, width, *from.data);
    else if (from.data != to)
      std::copy_n(from.data, width, to);
  }

  VectorCode<Real> const& code_;
  VectorArguments<Real> const& arguments_;
  Real* slots_;        // lane_width elements per value: broadcast, or the padded remainder
  Real* result_slot_;  // the same for the result
  Real* registers_;
  Lane<Real>* lanes_;
};

}  // namespace

template <class Real>
VectorProgram<Real>::VectorProgram(Expression const& expression, VectorLevel level) {
  VectorCode<Real> code = Compiler<Real>(expression).compile();
  code.execute = detail::execute_at<Real>(std::min(level, best_vector_level()));
  code_ = std::make_shared<VectorCode<Real> const>(std::move(code));
}

template <class Real>
std::size_t VectorProgram<Real>::scratch_bytes() const {
  return Run<Real>::scratch_bytes(*code_);
}

template <class Real>
void VectorProgram<Real>::run(Index count, VectorArguments<Real> const& arguments,
                              void* scratch) const noexcept {
  if (count > 0) Run<Real>(*code_, arguments, scratch).run(count);
}

template class VectorProgram<float>;
template class VectorProgram<double>;

}  // namespace cosmati::epilogue
