// One operation on doubles: what folding of constants and the reference share.
#pragma once
#include "cosmati/epilogue/expression.h"

namespace cosmati::epilogue {

double apply(Op op, double a, double b, double c);  // `op` is no leaf

}  // namespace cosmati::epilogue
